//! Sleeps, the time and random bits, all of them recorded.

use std::time::Duration;

use longhaul_task::{EntryKind, EntryState, JournalEntry, JournalPosition, Json, Timestamp, Wait};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ctx::Link;
use crate::journal::check_name;
use crate::{Ctx, CtxError};

impl Ctx {
    /// Sleeps for `duration`. The time of the end is recorded, so that a restart of the server does not lengthen the sleep.
    /// A tool with `on_crash = resume` holds no memory and no worker meanwhile.
    pub async fn sleep(&mut self, name: &str, duration: Duration) -> Result<(), CtxError> {
        check_name(name)?;
        let wait = match self.look_up(EntryKind::Timer, name).await? {
            JournalLookup::Found(position, wait) => {
                let current = self.by_clock(wait).await?;
                if current == wait { wait } else { self.append_value(position, EntryKind::Timer, name, current)? }
            }
            JournalLookup::Missing(position) => {
                self.append_value(position, EntryKind::Timer, name, self.wait_from_now(duration).await?)?
            }
        };
        self.wait_for(wait).await
    }

    /// The time by the store's clock, in milliseconds since the Unix epoch. A resumed handler gets the time that it got before.
    pub async fn now(&mut self) -> Result<Timestamp, CtxError> {
        match self.look_up(EntryKind::Now, "").await? {
            JournalLookup::Found(_, now) => Ok(now),
            JournalLookup::Missing(position) => self.append_value(position, EntryKind::Now, "", self.clock().await?),
        }
    }

    /// Random bits. A resumed handler gets the bits that it got before.
    pub async fn random(&mut self) -> Result<[u8; 16], CtxError> {
        match self.look_up(EntryKind::Random, "").await? {
            JournalLookup::Found(_, bits) => Ok(bits),
            JournalLookup::Missing(position) => {
                self.append_value(position, EntryKind::Random, "", self.random_source().bits())
            }
        }
    }

    /// Looks for the value that an earlier attempt recorded for the next operation.
    async fn look_up<T: DeserializeOwned>(
        &mut self,
        kind: EntryKind,
        name: &str,
    ) -> Result<JournalLookup<T>, CtxError> {
        let position = self.next_position()?;
        let Link::Task(link) = &self.link else { return Ok(JournalLookup::Missing(position)) };
        let entry = link.replay(&position, kind, name, 0).await?;
        let Some(EntryState::Done(output)) = entry.map(|entry| entry.state) else {
            return Ok(JournalLookup::Missing(position));
        };
        serde_json::from_str(output.as_str())
            .map(|value| JournalLookup::Found(position, value))
            .map_err(|error| bad_record(&error))
    }

    fn append_value<T: Serialize>(
        &self,
        position: JournalPosition,
        kind: EntryKind,
        name: &str,
        value: T,
    ) -> Result<T, CtxError> {
        let output = Json::from_text(serde_json::to_string(&value).map_err(|error| bad_record(&error))?);
        self.append(JournalEntry::new(position, kind, name.into(), 0, EntryState::Done(output)))?;
        Ok(value)
    }

    /// The time of the store's clock.
    pub(crate) async fn clock(&self) -> Result<Timestamp, CtxError> {
        match &self.link {
            Link::Task(link) => link.now().await,
            Link::Call(link) => Ok(link.engine.store.now().await?),
        }
    }

    /// A wait of this length that begins now.
    pub(crate) async fn wait_from_now(&self, duration: Duration) -> Result<Wait, CtxError> {
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Ok(Wait::of_ms(self.clock().await?, ms))
    }

    /// A recorded wait by the present clock, which may have gone back behind its beginning.
    pub(crate) async fn by_clock(&self, wait: Wait) -> Result<Wait, CtxError> {
        let now = self.clock().await?;
        Ok(match &self.link {
            Link::Task(link) => link.engine.clock_jumps.shorten(wait, now),
            Link::Call(_) => wait.by_clock(now),
        })
    }

    /// Waits until a wait is over by the store's clock.
    pub(crate) async fn wait_for(&self, wait: Wait) -> Result<(), CtxError> {
        match &self.link {
            Link::Task(link) => link.wait_for_time(wait, &self.branch).await,
            Link::Call(link) => {
                let rest = wait.until.ms_since(link.engine.store.now().await?);
                tokio::time::sleep(Duration::from_millis(rest)).await;
                Ok(())
            }
        }
    }
}

/// What the journal has for an operation.
enum JournalLookup<T> {
    Found(JournalPosition, T),
    /// The journal has no value. The operation is recorded at this position.
    Missing(JournalPosition),
}

fn bad_record(error: &serde_json::Error) -> CtxError {
    CtxError::BadRecord { cause: error.to_string() }
}
