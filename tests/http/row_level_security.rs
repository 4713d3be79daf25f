//! The second wall between organizations, in PostgreSQL: what a connection under the role of the service
//! sees and can write, whatever it asks for.

use std::sync::Arc;

use pais::clock::SystemClock;
use pais::db::service_role::SERVICE_ROLE;
use pais::db::{RowScope, Store, audit_chain, organizations};
use pais::roles::{Caller, Role};
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, ConnectOptions};
use uuid::Uuid;

use crate::app::{TestApp, send};
use crate::hospital::{Hospital, id};

/// Tables without a policy: none has a row of an organization's data. Names of organizations are known
/// to every holder, who grants by name. Wrapped keys open nothing without the key of the service.
const WITHOUT_POLICY: [&str; 7] = [
    "_sqlx_migrations",
    "audit_pending",
    "dataset_keys",
    "instances",
    "keys_to_destroy",
    "organizations",
    "service_keys",
];

/// A connection that does not come from the service, under its role.
async fn raw_connection(app: &TestApp) -> PgConnection {
    let options = app.state.unscoped().db.owner().connect_options();
    let mut connection = options.connect().await.unwrap();
    let role = AssertSqlSafe(format!("SET ROLE {SERVICE_ROLE}"));
    sqlx::raw_sql(role).execute(&mut connection).await.unwrap();
    connection
}

async fn set(connection: &mut PgConnection, scope: &str, organization: &str) {
    sqlx::query(
        "SELECT set_config('pais.scope', $1, false), set_config('pais.organization', $2, false)",
    )
    .bind(scope)
    .bind(organization)
    .execute(connection)
    .await
    .unwrap();
}

async fn tables(connection: &mut PgConnection) -> Vec<String> {
    sqlx::query_scalar(
        "SELECT relname::text FROM pg_class
         WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1",
    )
    .fetch_all(connection)
    .await
    .unwrap()
}

async fn count(connection: &mut PgConnection, table: &str) -> i64 {
    let query = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
    let counted = sqlx::query_scalar(query).fetch_one(connection).await;
    counted.unwrap_or_else(|error| panic!("{table}: {error}"))
}

/// The id of the organization of this name.
async fn organization(app: &TestApp, name: &str) -> String {
    sqlx::query_scalar::<_, Uuid>("SELECT id FROM organizations WHERE name = $1")
        .bind(name)
        .fetch_one(app.state.unscoped().db.owner())
        .await
        .unwrap()
        .to_string()
}

/// A hospital that has a row in every table with a policy, and whose release the BTS was granted.
async fn filled() -> (Hospital, String) {
    let hospital = Hospital::new().await;
    let app = &hospital.app;
    let tree = json!({ "name": "sexes", "root": { "label": "*", "children": [{ "label": "F" }] } });
    hospital.post("/v1/taxonomies", &tree).await.json(201);
    let release = hospital.release().await;
    let job = hospital.get(&release).await.json(200)["job_id"].clone();
    let repeated = json!({ "job_id": job });
    let repeat = app.request(reqwest::Method::POST, "/v1/releases");
    let repeat = repeat.bearer_auth(&hospital.token).json(&repeated);
    send(repeat).await.json(201);
    let upload = app.request(
        reqwest::Method::POST,
        &format!("{}/submissions", hospital.dataset().await),
    );
    let upload = upload.bearer_auth(&hospital.token);
    let upload = upload.header("content-type", "text/csv");
    let upload = upload.header("idempotency-key", "once");
    let upload = upload.body(crate::hospital::TABLE);
    send(upload).await.json(201);
    let policy = json!({ "require_approval": true });
    let put = app.request(reqwest::Method::PUT, "/v1/policy");
    send(put.bearer_auth(&hospital.token).json(&policy))
        .await
        .json(200);
    let second = app.token("hospital", Role::Holder).await;
    app.post(&second, &format!("{release}/approval"), &json!({}))
        .await
        .json(201);
    let bts = app.token("bts", Role::Recipient).await;
    let asked = json!({ "recipient": "bts", "purpose": "blood usage" });
    let grants = format!("{release}/grants");
    hospital.post(&grants, &asked).await.json(201);
    let data = app.get(&bts, &format!("{release}/data")).await;
    assert_eq!(data.status, 200);
    let dataset = hospital.get(&release).await.json(200)["dataset_id"].clone();
    let publication = json!({
        "name": "monthly", "dataset_id": dataset,
        "job": { "privacy": { "model": "k_anonymity", "k": 2 } },
        "recipients": [{ "recipient": "bts", "purpose": "blood usage" }],
    });
    // Its edition is queued.
    hospital
        .post("/v1/publications", &publication)
        .await
        .json(201);
    for statement in [
        "INSERT INTO located_objects (submission_id, index, path, etag, bytes)
         SELECT id, 0, 'a.parquet', 'e', 1 FROM submissions LIMIT 1",
        "INSERT INTO release_locations
             (release_id, organization_id, job_id, lease_token, url, created_at)
         SELECT release_id, organization_id, job_id, gen_random_uuid(), 's3://lake', now()
         FROM releases r JOIN grants g USING (organization_id) WHERE g.release_id = r.id",
        "INSERT INTO release_files (release_id, position, table_name, name, rows, bytes, sha256)
         SELECT release_id, 0, 'data', 'data-00000.parquet', 1, 1, sha256('x') FROM grants",
    ] {
        sqlx::raw_sql(statement)
            .execute(app.state.unscoped().db.owner())
            .await
            .unwrap();
    }
    (hospital, release)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_of_the_service_sees_the_rows_of_its_organization_alone() {
    let (hospital, release) = filled().await;
    let app = &hospital.app;
    app.token("other", Role::Holder).await;
    let mut connection = raw_connection(app).await;
    let with_policy: Vec<String> = tables(&mut connection).await;
    let with_policy = with_policy
        .into_iter()
        .filter(|table| !WITHOUT_POLICY.contains(&table.as_str()));
    let (hospital_id, bts, other) = (
        organization(app, "hospital").await,
        organization(app, "bts").await,
        organization(app, "other").await,
    );
    let service = app.state.unscoped();
    audit_chain::extend(&service.db, &service.keys)
        .await
        .unwrap();
    // What is counted below is no empty table but for these two.
    let empty = ["job_runs", "audit_archives"];
    for table in with_policy {
        set(&mut connection, "", "").await;
        assert_eq!(count(&mut connection, &table).await, 0, "{table} unset");
        set(&mut connection, "organization", "").await;
        assert_eq!(count(&mut connection, &table).await, 0, "{table} nobody");
        set(&mut connection, "service", "").await;
        let all = count(&mut connection, &table).await;
        assert!(all > 0 || empty.contains(&table.as_str()), "{table}");
        set(&mut connection, "organization", &hospital_id).await;
        let own = count(&mut connection, &table).await;
        let shared = ["tokens", "audit_events", "audit_chain"];
        if ["audit_heads", "audit_root"].contains(&table.as_str()) {
            assert_eq!(own, 0, "the service alone reads {table}");
        } else if shared.contains(&table.as_str()) {
            assert!(0 < own && own < all, "{table}");
        } else {
            assert_eq!(own, all, "{table} holder");
        }
        set(&mut connection, "organization", &other).await;
        let others = count(&mut connection, &table).await;
        match table.as_str() {
            "tokens" => assert_eq!(others, 1, "its own"),
            "audit_events" | "audit_chain" => assert!(others < own, "those of its token"),
            _ => assert_eq!(others, 0, "{table} other"),
        }
        set(&mut connection, "organization", &bts).await;
        let granted = count(&mut connection, &table).await;
        match table.as_str() {
            "tokens"
            | "releases"
            | "release_tables"
            | "release_files"
            | "grants"
            | "policies"
            | "release_readers"
            | "release_approvals"
            | "publications"
            | "publication_recipients" => assert_eq!(granted, 1, "{table} bts"),
            "release_chunks" | "audit_events" | "audit_chain" => {
                assert!(granted >= 1, "{table} bts")
            }
            _ => assert_eq!(granted, 0, "{table} bts"),
        }
    }
    set(&mut connection, "organization", &bts).await;
    let seen: Uuid = sqlx::query_scalar("SELECT id FROM releases")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(seen.to_string(), id(&release));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_of_the_service_writes_no_rows_of_another_organization() {
    let (hospital, release) = filled().await;
    let app = &hospital.app;
    app.token("other", Role::Holder).await;
    let mut connection = raw_connection(app).await;
    let hospital_id = organization(app, "hospital").await;
    for organization in [
        organization(app, "other").await,
        organization(app, "bts").await,
    ] {
        set(&mut connection, "organization", &organization).await;
        for statement in [
            "UPDATE releases SET name = 'x'",
            "UPDATE datasets SET name = 'x'",
            "UPDATE grants SET expires_at = NULL",
            "DELETE FROM grants",
            "DELETE FROM submission_chunks",
            "DELETE FROM release_chunks",
            "DELETE FROM policies",
        ] {
            let done = sqlx::raw_sql(statement).execute(&mut connection).await;
            assert_eq!(done.unwrap().rows_affected(), 0, "{statement}");
        }
        // A grant to itself.
        let forged = sqlx::query(
            "INSERT INTO grants (id, release_id, recipient_id, purpose, created_at, organization_id)
             VALUES ($1, $2, $3, 'x', now(), $4)",
        )
        .bind(Uuid::new_v4())
        .bind(Uuid::parse_str(id(&release)).unwrap())
        .bind(Uuid::parse_str(&organization).unwrap())
        .bind(Uuid::parse_str(&hospital_id).unwrap())
        .execute(&mut connection)
        .await;
        let refused = forged.unwrap_err().to_string();
        assert!(refused.contains("row-level security"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_of_the_service_owns_nothing_and_only_adds_to_the_audit_log() {
    let app = TestApp::new().await;
    let mut connection = raw_connection(&app).await;
    set(&mut connection, "service", "").await;
    for statement in [
        "UPDATE audit_events SET action = 'x'",
        "DELETE FROM audit_events",
        "TRUNCATE audit_events CASCADE",
        "DELETE FROM audit_chain",
        "ALTER TABLE audit_events DISABLE TRIGGER ALL",
        "ALTER TABLE datasets DISABLE ROW LEVEL SECURITY",
        "DROP POLICY of_holder ON releases",
        "DROP TABLE grants",
        "DELETE FROM _sqlx_migrations",
        "ALTER ROLE pais_service BYPASSRLS",
    ] {
        let refused = sqlx::raw_sql(statement).execute(&mut connection).await;
        let code = refused
            .unwrap_err()
            .into_database_error()
            .and_then(|error| error.code().map(String::from));
        assert_eq!(code.as_deref(), Some("42501"), "{statement}");
    }
    let (bypasses, is_superuser): (bool, bool) =
        sqlx::query_as("SELECT rolbypassrls, rolsuper FROM pg_roles WHERE rolname = current_user")
            .fetch_one(&mut connection)
            .await
            .unwrap();
    assert!(!bypasses && !is_superuser);
    let unprotected: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class
         WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
               AND NOT relrowsecurity
         ORDER BY 1",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(unprotected, WITHOUT_POLICY, "a new table needs a policy");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_work_under_the_role_and_with_the_rows_of_their_caller() {
    let (hospital, _) = filled().await;
    let app = &hospital.app;
    app.token("other", Role::Holder).await;
    let service = app.state.unscoped();
    let seen = async |scope: RowScope| -> (String, i64, i64) {
        let store = service.db.within(scope);
        let query = "SELECT current_user::text, (SELECT count(*) FROM datasets),
                            (SELECT count(*) FROM tokens)";
        let single = sqlx::query_as(query)
            .fetch_one(&mut *store.connection().await.unwrap())
            .await
            .unwrap();
        let mut transaction = store.begin().await.unwrap();
        let together = sqlx::query_as(query)
            .fetch_one(&mut *transaction)
            .await
            .unwrap();
        assert_eq!(single, together);
        single
    };
    let caller = async |name: &str, role: Role| Caller {
        organization: organization(app, name).await.parse().unwrap(),
        role,
        token: Uuid::nil().to_string().parse().unwrap(),
        address: None,
    };
    let role = SERVICE_ROLE.to_owned();
    let scope = RowScope::of(caller("hospital", Role::Holder).await);
    assert_eq!(seen(scope).await, (role.clone(), 2, 2));
    let scope = RowScope::of(caller("other", Role::Holder).await);
    assert_eq!(seen(scope).await, (role.clone(), 0, 1));
    let scope = RowScope::of(caller("bts", Role::Recipient).await);
    assert_eq!(seen(scope).await, (role.clone(), 0, 1));
    // An administrator sees the tokens of all, and no dataset.
    let scope = RowScope::of(caller("other", Role::Admin).await);
    assert_eq!(seen(scope).await, (role.clone(), 0, 4));
    assert_eq!(seen(RowScope::Service).await, (role, 2, 4));
}

/// With an external database whose user may not create roles, the service works as the owner.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_create_roles_the_service_works_as_the_owner() {
    let app = TestApp::new().await;
    let options = app.state.unscoped().db.owner().connect_options();
    let superuser = (*options).clone().username("postgres");
    let mut connection = superuser.connect().await.unwrap();
    let name = format!("plain_{}", Uuid::new_v4().simple());
    for statement in [
        format!("CREATE ROLE {name} LOGIN PASSWORD 'plain'"),
        format!("CREATE DATABASE {name} OWNER {name}"),
    ] {
        let statement = AssertSqlSafe(statement);
        sqlx::raw_sql(statement)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    let options = (*options).clone();
    let options = options.username(&name).password("plain").database(&name);
    let store = Store::new(options, 2, Arc::new(SystemClock));
    store.migrate().await.unwrap();
    store.prepare_role().await.unwrap();
    let made = organizations::find_or_create(&store, "hospital")
        .await
        .unwrap();
    let store = store.within(RowScope::Organization(made.id));
    let (user, organizations): (String, i64) =
        sqlx::query_as("SELECT current_user::text, (SELECT count(*) FROM organizations)")
            .fetch_one(&mut *store.connection().await.unwrap())
            .await
            .unwrap();
    assert_eq!((user, organizations), (name, 1));
}
