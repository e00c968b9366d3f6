//! Testing a tool: its questions, its failures, its time limits, and a crash anywhere.
//!
//! `cargo test -p longhaul --example testing`

use std::time::Duration;

use longhaul::{Ctx, Failure, Form, FormAnswer, JsonSchema, OnCrash, Server, StoreUrl, Tool};

#[derive(serde::Deserialize, JsonSchema)]
struct Trip {
    city: String,
}

#[derive(serde::Deserialize, JsonSchema)]
struct Choice {
    hotel: String,
}

fn book_trip() -> Tool {
    Tool::new("book_trip", |mut ctx: Ctx, trip: Trip| async move {
        let hotels = ctx.step("search", || search(&trip.city)).await?;
        let question = Form::<Choice>::new(format!("Which of these: {}?", hotels.join(", ")));
        let FormAnswer::Accepted(Choice { hotel }) = ctx.ask("hotel", question).await? else {
            return Ok("nothing is booked".to_owned());
        };
        ctx.sleep("until the prices fall", Duration::from_secs(3 * 24 * 3600)).await?;
        let room = ctx.step("book", || book(&hotel)).await?;
        Ok(format!("room {room} in {hotel}, {}", trip.city))
    })
    .on_crash(OnCrash::Resume)
}

async fn search(city: &str) -> Result<Vec<String>, Failure> {
    tokio::task::yield_now().await;
    if city == "Atlantis" {
        return Err(Failure::permanent("there are no hotels in Atlantis"));
    }
    Ok(vec!["Grand".into(), "Central".into()])
}

async fn book(hotel: &str) -> Result<usize, Failure> {
    tokio::task::yield_now().await;
    Ok(100 + hotel.len())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = "sqlite:trips.db".parse::<StoreUrl>()?.open().await?;
    let server = Server::new("trips").tool(book_trip()).start(store).await?;
    Ok(server.listen("127.0.0.1:8377".parse()?).await?.serve_until(tokio::signal::ctrl_c()).await?)
}

#[cfg(test)]
mod tests {
    use longhaul::testing::{self, HistoryItem};
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_trip_is_booked_whatever_crashes() {
        let mut run = testing::run(book_trip(), json!({ "city": "Rome" })).await;
        run.answer("hotel", json!({ "hotel": "Grand" })).await;
        assert_eq!(run.result().await.text().unwrap(), "room 105 in Grand, Rome");
        run.assert_resumable().await;
    }

    #[tokio::test]
    async fn nothing_is_booked_without_a_choice() {
        let mut run = testing::run(book_trip(), json!({ "city": "Rome" })).await;
        assert_eq!(run.question("hotel").await["message"], "Which of these: Grand, Central?");
        run.decline("hotel").await;
        assert_eq!(run.result().await.text().unwrap(), "nothing is booked");
    }

    #[tokio::test]
    async fn a_city_without_hotels_fails() {
        let mut run = testing::run(book_trip(), json!({ "city": "Atlantis" })).await;
        assert_eq!(run.result().await.error().unwrap(), "there are no hotels in Atlantis");
    }

    #[tokio::test]
    async fn a_crash_before_the_booking_books_once() {
        let mut run = testing::run(book_trip(), json!({ "city": "Rome" })).await;
        run.crash_after(4); // The search, the question, the answer, the timer.
        run.answer("hotel", json!({ "hotel": "Central" })).await;
        run.result().await;
        assert_eq!(run.entries().iter().filter(|entry| *entry == "step \"book\"").count(), 1);
        let history = run.history();
        assert!(history.iter().any(|event| matches!(event.what, HistoryItem::AttemptEnded { attempt: 1, .. })));
    }

    #[tokio::test]
    async fn a_cancelled_trip_is_not_booked() {
        let mut run = testing::run(book_trip(), json!({ "city": "Rome" })).await;
        run.question("hotel").await;
        run.cancel().await;
        assert!(run.result().await.is_cancelled());
    }
}
