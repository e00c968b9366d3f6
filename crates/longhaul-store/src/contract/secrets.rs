//! A secret never changes.

use super::Subject;
use super::kit::*;

pub async fn a_secret_keeps_its_first_value<S: Subject>() {
    let (subject, store) = empty::<S>().await;
    assert_eq!(store.secret("sessions", [1; 32]).await.unwrap(), [1; 32]);
    assert_eq!(store.secret("sessions", [2; 32]).await.unwrap(), [1; 32]);
    assert_eq!(store.secret("requests", [3; 32]).await.unwrap(), [3; 32]);
    let (_subject, store) = reopened(subject, store).await;
    assert_eq!(store.secret("sessions", [4; 32]).await.unwrap(), [1; 32]);
    assert_eq!(store.secret("requests", [5; 32]).await.unwrap(), [3; 32]);
}

pub async fn concurrent_calls_for_a_new_secret_get_the_same_value<S: Subject>() {
    let (subject, _store) = empty::<S>().await;
    let mut calls = Vec::new();
    for n in 0..8 {
        let store = subject.handle().await;
        calls.push(async move { store.secret("sessions", [n; 32]).await.unwrap() });
    }
    let secrets = all(calls).await;
    assert!(secrets.iter().all(|secret| *secret == secrets[0]));
}
