//! A job that ends the process beside one that does not.

use std::time::Duration;

use super::two_hospitals::{Hub, has_ended, slow};

#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_jobs_run_alone_so_that_one_does_not_fail_its_neighbour() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // With a lease this long, only a job that is taken over at once runs again in time.
    let settings = [("PAIS__WORKERS__LEASE_SECONDS", "600")];
    let mut hub = Hub::start(&data, &settings).await;
    let tenant = hub.tenant("hospital", 2).await;
    let poison = hub.job(&tenant, &slow()).await;
    let neighbour = hub.job(&tenant, &slow()).await;
    let longest = Duration::from_secs(60);
    for attempt in 1..=3 {
        hub.wait(&tenant, &poison, longest, |job| {
            job["status"] == "running" && job["attempt"] == attempt && job["rows_read"] != 0
        })
        .await;
        if attempt == 1 {
            hub.wait(&tenant, &neighbour, longest, |job| job["rows_read"] != 0)
                .await;
        }
        // The program is killed when it is dropped, as the poison would do. The neighbour, which runs
        // beside it at first only, is still in its first attempt.
        let beside = hub.see(&tenant, &neighbour).await;
        assert_eq!(beside["attempt"], 1, "{beside}");
        drop(hub);
        hub = Hub::start(&data, &settings).await;
    }
    let failed = hub.wait(&tenant, &poison, longest, has_ended).await;
    assert_eq!(failed["error"]["code"], "attempts_exhausted", "{failed}");
    let ended = hub.wait(&tenant, &neighbour, longest * 3, has_ended).await;
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!(ended["attempt"], 2);
    hub.service.stop();
}
