//! Lists that share their nodes keep their order.

use super::*;

#[test]
fn each_list_keeps_its_own_order() {
    let mut lists = Lists::new();
    let mut heads = [List::default(); 3];
    for round in 0..4_u32 {
        for value in 0..30 {
            lists.push(&mut heads[value as usize % 3], round * 100 + value);
        }
        for (place, head) in heads.iter_mut().enumerate() {
            let expected: Vec<u32> =
                (0..30).filter(|value| value % 3 == place as u32).map(|value| round * 100 + value).collect();
            assert_eq!(lists.iter(*head).copied().collect::<Vec<_>>(), expected);
            assert_eq!(lists.first(*head), expected.first());
            let popped: Vec<u32> = std::iter::from_fn(|| lists.pop(head)).collect();
            assert_eq!(popped, expected);
            assert!(head.is_empty() && lists.first(*head).is_none());
        }
    }
    assert_eq!(lists.nodes.len(), 30, "nodes are used again");
}
