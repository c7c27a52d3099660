use fanin_report::EventOutcome;

use super::Building;

impl Building {
    /// Events that the supervisor has assigned here.
    pub(crate) fn assigned(&self) -> u64 {
        self.assigned
    }

    /// Adds another partition's records of the events that this supervisor has assigned.
    pub(crate) fn absorb(&mut self, other: &Self) {
        assert!(self.has_supervisor && !other.has_supervisor, "one partition has the supervisor");
        assert!(other.rows.len() <= self.rows.len(), "an event that was not assigned");
        let stage = |outcome: &EventOutcome| EventOutcome::ALL.iter().position(|one| one == outcome);
        for (own, row) in self.rows.iter_mut().zip(&other.rows) {
            own.size_bytes += row.size_bytes;
            own.first_request_ps = own.first_request_ps.or(row.first_request_ps);
            own.last_byte_ps = own.last_byte_ps.or(row.last_byte_ps);
            own.collection_time_ps = own.collection_time_ps.or(row.collection_time_ps);
            own.outcome = [own.outcome, row.outcome].into_iter().max_by_key(stage).expect("two");
            let is_assigned = [0, own.assigned_ps].contains(&row.assigned_ps);
            assert!(is_assigned, "the time of the assignment of event {}", own.id);
        }
        for (own, answers) in self.answers.iter_mut().zip(&other.answers) {
            own.payload += answers.payload;
            own.bytes += answers.bytes;
            own.wire_bytes += answers.wire_bytes;
            own.response_last = own.response_last.max(answers.response_last);
            own.response_min = own.response_min.min(answers.response_min);
            own.request_bytes_min = own.request_bytes_min.min(answers.request_bytes_min);
            own.bytes_min = own.bytes_min.min(answers.bytes_min);
        }
    }
}
