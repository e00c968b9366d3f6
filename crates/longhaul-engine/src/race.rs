//! Races and time limits: the first branch that ends wins, and the winner is recorded.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use longhaul_task::transition::Abandon;
use longhaul_task::{EntryKind, EntryState, Event, JournalEntry, Json};

use crate::ctx::Link;
use crate::journal::check_name;
use crate::task_link::TaskLink;
use crate::{Ctx, CtxError};

/// The branch that won a race, with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Race<A, B> {
    /// The first branch has won.
    First(A),
    /// The second branch has won.
    Second(B),
}

/// A branch of a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    First,
    Second,
}

impl Side {
    const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

impl Ctx {
    /// Runs two branches at once until one of them ends. The other one is dropped: its open questions are closed, its
    /// children cancelled. The winner is recorded, so that a resumed handler goes on with the same one.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use longhaul_engine::{Ask, Ctx, CtxError, Race};
    /// # async fn handler<Q: Ask + 'static>(mut ctx: Ctx, question: Q) -> Result<(), CtxError> {
    /// let winner = ctx
    ///     .race(
    ///         "answer or reminder",
    ///         |mut ctx| async move { ctx.ask("approve", question).await },
    ///         |mut ctx| async move { ctx.sleep("a day", Duration::from_secs(86_400)).await },
    ///     )
    ///     .await?;
    /// match winner {
    ///     Race::First(answer) => drop(answer?),
    ///     Race::Second(slept) => slept?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn race<A, B, FutA, FutB>(
        &mut self,
        name: &str,
        first: impl FnOnce(Self) -> FutA,
        second: impl FnOnce(Self) -> FutB,
    ) -> Result<Race<A, B>, CtxError>
    where
        FutA: Future<Output = A>,
        FutB: Future<Output = B>,
    {
        check_name(name)?;
        let position = self.next_position()?;
        let [first_ctx, second_ctx] = [Side::First, Side::Second]
            .map(|side| self.fork_with(&format!("{}:{}", position.seq, side.as_str()), None));
        first_ctx.branch.start().run();
        second_ctx.branch.start().run();
        let paths = [Arc::clone(&first_ctx.path), Arc::clone(&second_ctx.path)];
        let path_of = |side: Side| Arc::clone(&paths[usize::from(side == Side::Second)]);
        if let Link::Task(link) = &self.link
            && let Some(entry) = link.replay(&position, EntryKind::Race, name, 0).await?
            && let EntryState::Done(output) = &entry.state
        {
            let first_won = output.as_str() == format!("{:?}", Side::First.as_str());
            let winner = if first_won { Side::First } else { Side::Second };
            // The attempt that recorded the winner may have crashed before it cancelled the children of the other branch.
            cancel_children(link, &path_of(winner.other())).await?;
            link.journal.abandon_fork(&path_of(winner.other()));
            let race = if first_won {
                drop(second_ctx);
                Race::First(first(first_ctx).await)
            } else {
                drop(first_ctx);
                Race::Second(second(second_ctx).await)
            };
            link.journal.end_fork(&path_of(winner));
            return Ok(race);
        }
        let (winner, race) = {
            let (first, second) = (pin!(first(first_ctx)), pin!(second(second_ctx)));
            match select(first, second).await {
                Either::Left((value, _)) => (Side::First, Race::First(value)),
                Either::Right((value, _)) => (Side::Second, Race::Second(value)),
            }
        };
        if let Link::Task(link) = &self.link {
            let output = Json::from_text(format!("{:?}", winner.as_str()));
            let entry = JournalEntry::new(position, EntryKind::Race, name.into(), 0, EntryState::Done(output));
            link.journal.end_fork(&path_of(winner));
            link.journal.abandon_fork(&path_of(winner.other()));
            abandon(link, entry, path_of(winner.other())).await?;
        }
        Ok(race)
    }

    /// Runs a branch for at most `limit`. Returns `None` if it has not ended by then. This is a [race](Ctx::race) with a sleep.
    pub async fn time_limit<T, Fut>(
        &mut self,
        name: &str,
        limit: Duration,
        work: impl FnOnce(Self) -> Fut,
    ) -> Result<Option<T>, CtxError>
    where
        Fut: Future<Output = T>,
    {
        let timer = |mut ctx: Self| async move { ctx.sleep("time limit", limit).await };
        match self.race(name, work, timer).await? {
            Race::First(value) => Ok(Some(value)),
            Race::Second(slept) => slept.map(|()| None),
        }
    }
}

/// Records the winner, closes the open questions of the other branch and cancels its children.
async fn abandon(link: &TaskLink, entry: JournalEntry, fork: Arc<str>) -> Result<(), CtxError> {
    link.ensure_not_cancelled()?;
    link.write_entries().await?;
    // The other branch may have been dropped while it asked a question or created a child, and the event may be under way.
    link.wait_until_applied().await;
    let task = link.read().await?;
    if task.phase.questions().into_iter().flatten().any(|question| question.position.is_in_fork(&fork)) {
        link.journal.count(&entry)?;
        let event = Abandon { fence: link.fence(), forks: vec![Arc::clone(&fork)], race: entry };
        link.apply(Event::Abandon(event)).await?;
    } else {
        link.journal.append(entry)?;
        // The winner is on stable storage before a child is cancelled: until then a later attempt may let the other branch win.
        if !link.journal.subtasks_in(&fork).is_empty() {
            link.write_entries().await?;
        }
    }
    cancel_children(link, &fork).await
}

async fn cancel_children(link: &TaskLink, fork: &str) -> Result<(), CtxError> {
    for id in link.journal.subtasks_in(fork) {
        link.cancel_child(id).await?;
    }
    Ok(())
}
