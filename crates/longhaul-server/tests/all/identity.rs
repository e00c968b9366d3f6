//! The caller and its origin: tokens, `Host` and `Origin`.

use longhaul::{Owner, TokenError, Tokens};
use longhaul_testkit::raw::RawRequest;
use longhaul_testkit::tools::tokens;
use longhaul_testkit::{TestServer, conformance};

#[tokio::test]
async fn without_a_known_token_nothing_is_even_read() {
    let server = TestServer::listen(conformance().tokens(tokens(&["adas", "bobs"]))).await;
    let wrong = [
        None,
        Some(""),
        Some("Bearer"),
        Some("Bearer "),
        Some("Bearer wrong"),
        Some("Bearer adas bobs"),
        Some("Bearer ada"),
        Some("Bearer ADAS"),
        Some("Basic adas"),
        Some("adas"),
        Some("Bearer \u{fffd}"),
    ];
    for value in wrong {
        for body in [RawRequest::discover().body, b"nonsense".to_vec(), vec![b' '; 5 << 20]] {
            let request = RawRequest { body, ..RawRequest::discover() };
            let request = match value {
                Some(value) => request.with("Authorization", value),
                None => request,
            };
            let answer = request.send(&server).await;
            assert_eq!(answer.status, 401, "{value:?}: {}", answer.text());
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{value:?}");
            assert_eq!(answer.json()["error"]["code"], -32600);
            assert!(answer.json().get("id").is_none());
        }
    }
    for value in ["Bearer adas", "bearer adas", "BEARER   adas "] {
        assert_eq!(RawRequest::discover().with("Authorization", value).send(&server).await.status, 200, "{value}");
    }
}

#[tokio::test]
async fn a_server_without_tokens_answers_only_to_names_of_this_machine() {
    let server = TestServer::listen(conformance().origin("https://app.example")).await;
    let port = server.address().port();
    let hosts = [
        ("localhost".to_owned(), 200),
        (format!("localhost:{port}"), 200),
        (format!("127.0.0.1:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("evil.example".to_owned(), 403),
        (format!("evil.example:{port}"), 403),
        ("127.0.0.1.evil.example".to_owned(), 403),
        ("localhost.evil.example".to_owned(), 403),
        ("10.0.0.1".to_owned(), 403),
        (String::new(), 403),
    ];
    for (host, status) in hosts {
        let answer = RawRequest::discover().set("Host", &host).send(&server).await;
        assert_eq!(answer.status, status, "Host {host:?}: {}", answer.text());
    }
    let origins = [
        (format!("http://localhost:{port}"), 200),
        ("http://127.0.0.1:3000".to_owned(), 200),
        ("https://app.example".to_owned(), 200),
        ("https://app.example.evil.example".to_owned(), 403),
        ("http://evil.example".to_owned(), 403),
        ("http://localhost.evil.example".to_owned(), 403),
        ("http://localhost@evil.example".to_owned(), 403),
        ("null".to_owned(), 403),
        (String::new(), 403),
    ];
    for (origin, status) in origins {
        let answer = RawRequest::discover().with("Origin", &origin).send(&server).await;
        assert_eq!(answer.status, status, "Origin {origin:?}: {}", answer.text());
        if status == 403 {
            assert_eq!(answer.json()["error"]["code"], -32600);
            assert!(answer.json().get("id").is_none());
        }
    }
    let two = RawRequest::discover().with("Origin", "http://localhost").with("Origin", "http://evil.example");
    assert_eq!(two.send(&server).await.status, 403, "a second origin is not overlooked");
    let two = RawRequest::discover().with("Host", "evil.example");
    assert_eq!(two.send(&server).await.status, 403, "nor is a second host");
}

#[tokio::test]
async fn a_server_with_tokens_answers_to_any_name_and_lets_in_its_own_origin() {
    let server = TestServer::listen(conformance().tokens(tokens(&["adas", "bobs"]))).await;
    let call = |host: &str| RawRequest::discover().set("Host", host).with("Authorization", "Bearer adas");
    assert_eq!(call("tasks.example").send(&server).await.status, 200);
    assert_eq!(call("tasks.example").with("Origin", "https://tasks.example").send(&server).await.status, 200);
    assert_eq!(call("tasks.example").with("Origin", "https://evil.example").send(&server).await.status, 403);
    assert_eq!(call("tasks.example").with("Origin", "http://localhost").send(&server).await.status, 403);
}

#[test]
fn a_token_line_with_too_long_an_owner_is_refused() {
    const OWNER: usize = longhaul_task::NAME_BYTES_MAX;
    let line = |bytes: usize| {
        let hash = Tokens::line(&Owner::parse("x").unwrap(), "secret");
        format!("{}{}", "x".repeat(bytes - 1), hash)
    };
    assert_eq!(Tokens::parse(&line(OWNER)).unwrap().len(), 1);
    assert!(matches!(Tokens::parse(&line(OWNER + 1)).unwrap_err(), TokenError::Owner(1, _)));
}
