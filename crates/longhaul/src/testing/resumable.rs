//! Repeats a run with a crash after every journal entry.

use std::sync::Arc;

use super::Run;
use super::run::describe_entry;
use crate::OnCrash;

impl Run {
    /// Waits for the end of the run, then repeats it with the same answers and one crash: after the first journal entry, after the
    /// second, and so on. Each time the result must be the same.
    ///
    /// It finds handlers that depend on something that is not recorded: the time, a random number, the order of a hash map,
    /// a variable of the process; and names of operations that differ from attempt to attempt. It does not find effects that
    /// happen twice because a crash came between an effect and its entry: see [`Ctx::token`](crate::Ctx::token).
    ///
    /// The result must not contain what differs from run to run anyway: the ID of the task, the number of the attempt, random
    /// bits, the time.
    ///
    /// # Panics
    ///
    /// If a result differs: the message has the entry and both results. Also if the tool does not have
    /// [`OnCrash::Resume`](crate::OnCrash::Resume), or if the run was cancelled.
    pub async fn assert_resumable(&mut self) {
        let on_crash = self.setup.tools[0].policy.on_crash;
        let tool = &self.setup.tool;
        assert!(on_crash == OnCrash::Resume, "{tool} is not resumed after a crash: add .on_crash(OnCrash::Resume)");
        let expected = self.result().await;
        assert!(!expected.is_cancelled(), "the run was cancelled, so it has no result to compare");
        let entries = self.journal_writes().len();
        for after in 1..=entries {
            let mut again = Self::new(Arc::clone(&self.setup));
            again.crash_after(after);
            let result = again.repeat_all(self).await;
            let entry = again
                .journal_writes()
                .get(after - 1)
                .map_or_else(|| "which was not reached".into(), |(_, entry)| describe_entry(entry));
            let place = format!("a crash after entry {after} of {entries} ({entry})");
            match result {
                Ok(result) if result == expected => {}
                Ok(result) => panic!("{place} changes the result\n  from {expected}\n  to   {result}"),
                Err(stuck) => panic!("{place} stops the run: {stuck}"),
            }
        }
    }
}
