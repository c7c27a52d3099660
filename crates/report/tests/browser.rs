//! The page in a real browser, where Chromium is installed: no complaint, every chart found, keys work.

use std::fs;
use std::process::{Command, Stdio};

use fanin_report::{
    EventRow, Kind, Outcome, QueueRow, Records, RunResult, ScenarioName, Span, Summary, page,
};
use fanin_units::Instant;

const MS: u64 = 1_000_000_000;

fn result(label: &str) -> RunResult {
    let events: Vec<EventRow> = (0..200)
        .map(|id| EventRow {
            id,
            size_bytes: 100_000,
            assigned_ps: id * MS,
            last_byte_ps: Some((id + 2) * MS + id * 1_000_000),
            collection_time_ps: Some(2 * MS + id * 1_000_000),
            ideal_ps: Some(2 * MS),
            outcome: Outcome::Collected,
            ..EventRow::default()
        })
        .collect();
    let queues = (0..100)
        .map(|step| QueueRow {
            queue: "tor→dcm".into(),
            time_ps: step * MS,
            queue_bytes: (step % 7) * 1500,
            ..QueueRow::default()
        })
        .collect();
    let scenario = ScenarioName { name: "browser </script>".into(), hash: "1".into() };
    let mut summary = Summary::new(Kind::Sim, "0.1.0", scenario);
    summary.fill_events(&events, Span { from: Instant::START, until: Instant::new(200 * MS) }, 1, false);
    let records = Records { events, queues, ..Records::default() };
    RunResult { label: label.into(), records, ..RunResult::new(summary) }
}

/// Presses a key on every chart and says what was read out.
const PROBE: &str = r#"<script>
var texts = [];
document.querySelectorAll("figure[data-chart]").forEach(function (figure) {
  figure.querySelectorAll(":scope > svg").forEach(function (svg) {
    svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  });
  texts.push(figure.querySelector("output").textContent);
});
document.body.dataset.probe = texts.join(";");
</script>
</body>"#;

#[test]
fn a_browser_shows_every_chart_and_complains_of_nothing() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    }) else {
        return;
    };
    let scratch = std::env::temp_dir().join(format!("fanin-report-{}-browser", std::process::id()));
    fs::create_dir_all(&scratch).unwrap();
    let path = scratch.join("page.html");
    let html = page(&[result("first"), result("second")]);
    fs::write(&path, html.replace("</body>", PROBE)).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", scratch.join("profile").display()))
        .arg(format!("file://{}", path.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    fs::remove_dir_all(&scratch).unwrap();
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let complaints: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    assert!(dom.contains("data-charts=\"3\""), "{log}");
    let probe = dom.split("data-probe=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let texts: Vec<&str> = probe.split(';').collect();
    assert_eq!(texts.len(), 3, "{probe}");
    for text in texts {
        assert!(text.contains("first ") || text.contains("first: tor→dcm "), "{text}");
        assert!(text.contains("second"), "{text}");
    }
}
