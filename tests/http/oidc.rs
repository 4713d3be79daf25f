//! People who sign in with an issuer: which tokens are accepted, and which attacks are not.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pais::oidc::OidcSettings;
use pais::roles::Role;
use parking_lot::Mutex;
use rcgen::{KeyPair, PublicKeyData};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};

use crate::app::{Answer, TestApp};
use crate::hospital::definition;

/// An issuer on this machine.
struct Issuer {
    address: String,
    state: Arc<Mutex<IssuerState>>,
}

#[derive(Default)]
struct IssuerState {
    address: String,
    keys: Vec<Value>,
    is_away: bool,
    requests: u32,
}

/// A key of the issuer.
struct Key {
    id: String,
    pair: KeyPair,
}

impl Key {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            pair: KeyPair::generate().unwrap(),
        }
    }

    /// The public half as a JSON Web Key: an uncompressed point of P-256.
    fn jwk(&self) -> Value {
        let point = self.pair.der_bytes();
        let half = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": half(&point[1..33]), "y": half(&point[33..65]),
        })
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({"typ": "JWT", "alg": "ES256", "kid": self.id});
        self.sign_with(&header, claims)
    }

    /// A token with this header, whose signature is right.
    fn sign_with(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let (pair, random) = (self.pair.serialize_der(), SystemRandom::new());
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pair, &random);
        let signature = pair.unwrap().sign(&random, message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// What is signed of a token.
fn message(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

async fn document(
    State(state): State<Arc<Mutex<IssuerState>>>,
    keys: bool,
) -> Result<Json<Value>, StatusCode> {
    let mut state = state.lock();
    state.requests += 1;
    let address = &state.address;
    match (state.is_away, keys) {
        (true, _) => Err(StatusCode::SERVICE_UNAVAILABLE),
        (false, true) => Ok(Json(json!({ "keys": state.keys }))),
        (false, false) => {
            let keys = format!("{address}/keys");
            Ok(Json(json!({ "issuer": address, "jwks_uri": keys })))
        }
    }
}

impl Issuer {
    async fn start(keys: &[&Key]) -> Self {
        let state = Arc::new(Mutex::new(IssuerState::default()));
        let discovery = |state| document(state, false);
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(|state| document(state, true)))
            .with_state(state.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let issuer = Self { address, state };
        issuer.state.lock().address.clone_from(&issuer.address);
        issuer.publish(keys);
        issuer
    }

    fn publish(&self, keys: &[&Key]) {
        self.state.lock().keys = keys.iter().map(|key| key.jwk()).collect();
    }

    fn settings(&self) -> OidcSettings {
        OidcSettings {
            issuer: self.address.clone(),
            audience: "pais".to_owned(),
            organization_claim: "organization".to_owned(),
            role_claim: "roles".to_owned(),
            subject_claim: "sub".to_owned(),
            leeway_seconds: 30,
        }
    }

    /// The claims of a holder of the hospital.
    fn claims(&self) -> Value {
        json!({
            "iss": self.address, "aud": ["other", "pais"], "sub": "anna",
            "exp": in_seconds(300), "organization": "hospital",
            "roles": ["offline_access", "holder"],
        })
    }
}

fn in_seconds(seconds: i64) -> i64 {
    (OffsetDateTime::now_utc() + Duration::seconds(seconds)).unix_timestamp()
}

/// A service that accepts the issuer's tokens, with an organization `hospital`.
async fn service(issuer: &Issuer) -> TestApp {
    let builder = TestApp::builder().without_workers();
    let app = builder.oidc(issuer.settings()).start().await;
    app.token("hospital", Role::Auditor).await;
    app
}

async fn datasets(app: &TestApp, token: &str) -> Answer {
    app.get(token, "/v1/datasets").await
}

fn with(claims: &Value, name: &str, value: Value) -> Value {
    let mut claims = claims.clone();
    claims[name] = value;
    claims
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_acts_for_an_organization_and_is_named_in_its_log() {
    let key = Key::new("one");
    let issuer = Issuer::start(&[&key]).await;
    let app = service(&issuer).await;
    let anna = key.sign(&issuer.claims());
    assert_eq!(datasets(&app, &anna).await.status, 200);
    let made = app
        .post(&anna, "/v1/datasets", &definition("patients"))
        .await;
    made.json(201);
    let berta = key.sign(&with(&issuer.claims(), "sub", json!("berta")));
    assert_eq!(datasets(&app, &berta).await.status, 200);
    // Not beyond the role.
    app.get(&anna, "/v1/tokens").await.problem(403, "forbidden");

    let auditor = app.token("hospital", Role::Auditor).await;
    let by_anna = app.get(&auditor, "/v1/audit?actor=anna").await.json(200);
    let actions: Vec<&Value> = by_anna["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| &event["action"])
        .collect();
    assert_eq!(
        actions,
        ["token.refused", "dataset.created", "token.created"]
    );

    // An administrator sees the person, and can end their access.
    let admin = app.token("operators", Role::Admin).await;
    let tokens = app.get(&admin, "/v1/tokens").await.json(200);
    let tokens = tokens["items"].as_array().unwrap();
    let person = tokens.iter().find(|token| token["oidc_subject"] == "anna");
    let path = format!("/v1/tokens/{}", person.unwrap()["id"].as_str().unwrap());
    assert_eq!(app.delete(&admin, &path).await.status, 204);
    datasets(&app, &anna).await.problem(401, "unauthenticated");
    assert_eq!(datasets(&app, &berta).await.status, 200);
}

/// An officer who signs in decides from the first time on, until an administrator revokes that person.
#[tokio::test(flavor = "multi_thread")]
async fn an_officer_who_has_signed_in_decides_for_the_organization() {
    let key = Key::new("one");
    let issuer = Issuer::start(&[&key]).await;
    let app = service(&issuer).await;
    let put = async |token: &str| {
        let request = app.request(reqwest::Method::PUT, "/v1/policy");
        crate::app::send(request.bearer_auth(token).json(&json!({ "k_min": 3 }))).await
    };
    let holder = key.sign(&issuer.claims());
    put(&holder).await.json(200);
    let officer = with(&issuer.claims(), "sub", json!("berta"));
    let officer = key.sign(&with(&officer, "roles", json!(["officer"])));
    let who = app.get(&officer, "/v1/whoami").await.json(200);
    assert_eq!(who["role"], "officer");
    put(&holder).await.problem(403, "officer_required");
    put(&officer).await.json(200);
    let admin = app.token("operators", Role::Admin).await;
    let person = format!("/v1/tokens/{}", who["token_id"].as_str().unwrap());
    assert_eq!(app.delete(&admin, &person).await.status, 204);
    put(&officer).await.problem(401, "unauthenticated");
    put(&holder).await.json(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_are_not_for_this_service_are_refused() {
    let key = Key::new("one");
    let issuer = Issuer::start(&[&key]).await;
    let app = service(&issuer).await;
    let claims = issuer.claims();
    assert_eq!(datasets(&app, &key.sign(&claims)).await.status, 200);
    // Clocks may differ by half a minute.
    let late = with(&claims, "exp", json!(in_seconds(-10)));
    assert_eq!(datasets(&app, &key.sign(&late)).await.status, 200);
    let mut without_audience = claims.clone();
    without_audience.as_object_mut().unwrap().remove("aud");
    let mut without_end = claims.clone();
    without_end.as_object_mut().unwrap().remove("exp");
    let refused = [
        with(&claims, "aud", json!("other")),
        with(&claims, "iss", json!("http://127.0.0.1:1")),
        with(&claims, "iss", json!([issuer.address])),
        with(
            &claims,
            "iss",
            json!([issuer.address, "http://127.0.0.1:1"]),
        ),
        with(&claims, "exp", json!(in_seconds(-60))),
        with(&claims, "nbf", json!(in_seconds(60))),
        without_audience,
        without_end,
        with(&claims, "organization", json!("nobody")),
        with(&claims, "organization", json!("")),
        with(&claims, "organization", json!(["hospital"])),
        with(&claims, "sub", Value::Null),
        with(&claims, "roles", json!(["holder", "admin"])),
        with(&claims, "roles", json!("root")),
    ];
    for claims in refused {
        let answer = datasets(&app, &key.sign(&claims)).await;
        answer.problem(401, "unauthenticated");
    }
}

/// A script with a wrong token does not lock out the people of its hospital, whose tokens are each new.
#[tokio::test(flavor = "multi_thread")]
async fn bad_tokens_do_not_lock_out_the_people_at_their_address() {
    let (key, unknown) = (Key::new("one"), Key::new("one"));
    let issuer = Issuer::start(&[&key]).await;
    let builder = TestApp::builder()
        .without_workers()
        .refused_tokens_per_minute(2);
    let app = builder.oidc(issuer.settings()).start().await;
    app.token("hospital", Role::Auditor).await;
    let bad = unknown.sign(&issuer.claims());
    let statuses = [401, 401, 401, 429, 429];
    for status in statuses {
        assert_eq!(datasets(&app, &bad).await.status, status);
    }
    for person in ["anna", "berta"] {
        let token = key.sign(&with(&issuer.claims(), "sub", json!(person)));
        assert_eq!(datasets(&app, &token).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_the_issuer_did_not_sign_are_refused() {
    let key = Key::new("one");
    let issuer = Issuer::start(&[&key]).await;
    let app = service(&issuer).await;
    let claims = issuer.claims();
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = key.sign(&claims);
    assert_eq!(datasets(&app, &signed).await.status, 200);

    // Without a signature.
    let header = json!({ "alg": "none", "typ": "JWT", "kid": "one" });
    let unsigned = format!("{}.", message(&header, &claims));
    // With the public key as if it were a shared secret.
    let header = json!({ "alg": "HS256", "typ": "JWT", "kid": "one" });
    let message_of_it = message(&header, &claims);
    let secret = hmac::Key::new(hmac::HMAC_SHA256, key.pair.der_bytes());
    let signature = hmac::sign(&secret, message_of_it.as_bytes());
    let confused = format!("{message_of_it}.{}", URL_SAFE_NO_PAD.encode(signature));
    // With another algorithm of the same header than that of the key.
    let header = json!({ "alg": "RS256", "typ": "JWT", "kid": "one" });
    let signature = signed.rsplit('.').next().unwrap();
    let renamed = format!("{}.{signature}", message(&header, &claims));
    // By another key under the same id, and with changed claims.
    let forged = Key::new("one").sign(&claims);
    let (head, _) = signed.split_once('.').unwrap();
    let admin = with(&claims, "roles", json!("admin"));
    let changed = format!("{head}.{}.{signature}", part(&admin));
    for token in [
        unsigned,
        confused,
        renamed,
        forged,
        changed,
        "a.b.c".to_owned(),
    ] {
        let answer = datasets(&app, &token).await;
        answer.problem(401, "unauthenticated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_rotated_and_cached_and_expire_without_their_issuer() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let issuer = Issuer::start(&[&old]).await;
    let app = service(&issuer).await;
    let claims = issuer.claims();
    let (by_old, by_new) = (old.sign(&claims), new.sign(&claims));
    assert_eq!(datasets(&app, &by_old).await.status, 200);
    let requests = issuer.state.lock().requests;
    assert_eq!(datasets(&app, &by_old).await.status, 200);
    assert_eq!(
        issuer.state.lock().requests,
        requests,
        "the keys are cached"
    );

    // A new key is fetched when it is first seen, and not more often than every ten seconds.
    issuer.publish(&[&new]);
    datasets(&app, &by_new)
        .await
        .problem(401, "unauthenticated");
    assert_eq!(issuer.state.lock().requests, requests);
    app.clock.advance(Duration::seconds(11));
    assert_eq!(datasets(&app, &by_new).await.status, 200);
    datasets(&app, &by_old)
        .await
        .problem(401, "unauthenticated");

    // The issuer is away: cached keys work for an hour, and no longer.
    issuer.state.lock().is_away = true;
    app.clock.advance(Duration::minutes(50));
    assert_eq!(datasets(&app, &by_new).await.status, 200);
    app.clock.advance(Duration::minutes(15));
    datasets(&app, &by_new).await.problem(503, "unavailable");
    issuer.state.lock().is_away = false;
    app.clock.advance(Duration::seconds(11));
    assert_eq!(datasets(&app, &by_new).await.status, 200);
}

/// RFC 7515, 4.1.11: what `crit` lists must be understood. RFC 8725, 3.11: a token of another type is not
/// for this.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_with_headers_that_are_not_understood_are_refused() {
    let key = Key::new("one");
    let issuer = Issuer::start(&[&key]).await;
    let app = service(&issuer).await;
    let claims = issuer.claims();
    let header = json!({ "alg": "ES256", "kid": "one" });
    let typed = |name: Value| with(&header, "typ", name);
    for header in [
        header.clone(),
        typed(json!("JWT")),
        typed(json!("at+jwt")),
        typed(json!("application/at+jwt")),
    ] {
        let token = key.sign_with(&header, &claims);
        assert_eq!(datasets(&app, &token).await.status, 200, "{header}");
    }
    for header in [
        with(&header, "crit", json!(["exp"])),
        with(&with(&header, "crit", json!(["b64"])), "b64", json!(true)),
        with(&header, "crit", json!([])),
        typed(json!("logout+jwt")),
        typed(json!("dpop+jwt")),
        typed(json!("")),
        typed(json!(7)),
    ] {
        let token = key.sign_with(&header, &claims);
        let answer = datasets(&app, &token).await;
        answer.problem(401, "unauthenticated");
    }
}
