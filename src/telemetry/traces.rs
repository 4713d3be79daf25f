//! Traces: where the time of requests, jobs and releases goes, as spans of OpenTelemetry. Without
//! `telemetry.otlp_endpoint` there are no spans, and nothing here does anything.
//!
//! Spans have words of this program, ids and numbers: no value, label, name, path or query of a client.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    FutureExt, Link, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt,
    TraceFlags, TraceId, TraceState, Tracer, TracerProvider,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider,
};

use super::otlp::{OtlpEndpoint, OtlpExporter};

/// Spans that wait to be sent. Further spans are dropped while the queue is full.
const QUEUE: usize = 2048;

/// Longest wait of a span before it is sent, unless the collector is slow.
const DELAY: Duration = Duration::from_secs(1);

/// How long the end of the process waits for the last spans.
const FLUSH_WAIT: Duration = Duration::from_secs(2);

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// The sending of the spans of this process, by a thread of its own.
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Begins to record spans and to send them to a collector.
    pub fn start(endpoint: OtlpEndpoint) -> Self {
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_scheduled_delay(DELAY)
            .build();
        let sender = BatchSpanProcessor::builder(OtlpExporter::new(endpoint));
        let resource = Resource::builder_empty().with_attributes([
            KeyValue::new("service.name", "pais"),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        ]);
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(resource.build())
            .with_span_processor(sender.with_batch_config(batches).build())
            .build();
        TRACER.get_or_init(|| provider.tracer("pais"));
        Self(provider)
    }

    /// Sends the spans that are left, within two seconds, and ends the sending.
    pub async fn flush(self) {
        let sent = tokio::task::spawn_blocking(move || self.0.shutdown_with_timeout(FLUSH_WAIT));
        if !matches!(sent.await, Ok(Ok(()))) {
            tracing::warn!("the last spans were not sent to telemetry.otlp_endpoint");
        }
    }
}

/// The trace context as stored in the database or passed between processes: the trace id, 16 bytes, and
/// the span id, 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
#[sqlx(transparent)]
pub struct TraceContext([u8; 24]);

impl TraceContext {
    /// The context of the span that this task or thread works for; `None` outside any span.
    pub fn current() -> Option<Self> {
        let context = Context::current();
        let span = context.span();
        let span = span.span_context();
        if !span.is_valid() {
            return None;
        }
        let mut bytes = [0; 24];
        let (trace, id) = bytes.split_at_mut(16);
        trace.copy_from_slice(&span.trace_id().to_bytes());
        id.copy_from_slice(&span.span_id().to_bytes());
        Some(Self(bytes))
    }

    /// Parses a `traceparent` of W3C Trace Context, version 00; `None` if it differs in anything.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let (version, rest) = traceparent.split_once('-')?;
        let (trace, rest) = rest.split_once('-')?;
        let (span, flags) = rest.split_once('-')?;
        let is_hex = |text: &str| {
            text.bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if version != "00" || flags.len() != 2 || ![trace, span, flags].into_iter().all(is_hex) {
            return None;
        }
        let mut bytes = [0; 24];
        hex::decode_to_slice(trace, &mut bytes[..16]).ok()?;
        hex::decode_to_slice(span, &mut bytes[16..]).ok()?;
        let parsed = Self(bytes);
        parsed.span_context().is_valid().then_some(parsed)
    }

    fn span_context(self) -> SpanContext {
        let (mut trace, mut span) = ([0; 16], [0; 8]);
        trace.copy_from_slice(&self.0[..16]);
        span.copy_from_slice(&self.0[16..]);
        SpanContext::new(
            TraceId::from_bytes(trace),
            SpanId::from_bytes(span),
            TraceFlags::SAMPLED,
            true,
            TraceState::NONE,
        )
    }
}

/// A span that has begun, or nothing where traces are off. It ends when it is dropped.
#[must_use]
pub struct TraceSpan(Option<Context>);

impl TraceSpan {
    /// The span of a request, which begins a trace. Clients are not trusted: the trace has an id of this
    /// service and is always recorded, and a parent span named by a client becomes a link.
    pub fn of_request(name: impl FnOnce() -> String, of_client: Option<TraceContext>) -> Self {
        let links = of_client.map(|client| Link::with_context(client.span_context()));
        Self::begin(&Context::new(), || {
            let builder = SpanBuilder::from_name(name()).with_kind(SpanKind::Server);
            builder.with_links(Vec::from_iter(links))
        })
    }

    /// The span of an attempt at a job, in the trace of the request that made the job; a trace of its own if
    /// the service made it.
    pub fn of_job(request: Option<TraceContext>) -> Self {
        let parent = match request {
            Some(request) => Context::new().with_remote_span_context(request.span_context()),
            None => Context::new(),
        };
        Self::begin(&parent, || {
            SpanBuilder::from_name("job").with_kind(SpanKind::Consumer)
        })
    }

    /// A part of the span that this task or thread works for; nothing outside any span.
    pub fn part(name: &'static str) -> Self {
        let parent = Context::current();
        if !parent.has_active_span() {
            return Self(None);
        }
        Self::begin(&parent, || SpanBuilder::from_name(name))
    }

    fn begin(parent: &Context, builder: impl FnOnce() -> SpanBuilder) -> Self {
        let begun = TRACER.get().map(|tracer| {
            let span = tracer.build_with_context(builder(), parent);
            parent.with_span(span)
        });
        Self(begun)
    }

    /// Adds a part that has ended.
    pub fn add_part(&self, name: &'static str, from: SystemTime, to: SystemTime) {
        let (Some(context), Some(tracer)) = (&self.0, TRACER.get()) else {
            return;
        };
        let builder = SpanBuilder::from_name(name).with_start_time(from);
        let mut part = tracer.build_with_context(builder, context);
        opentelemetry::trace::Span::end_with_timestamp(&mut part, to);
    }

    /// The id of the trace, for the log; `None` where traces are off.
    pub fn trace_id(&self) -> Option<impl Display + use<>> {
        let context = self.0.as_ref()?;
        Some(context.span().span_context().trace_id())
    }

    /// Sets an attribute that is an id or a word of this program.
    pub fn set(&self, key: &'static str, text: impl Display) {
        if let Some(context) = &self.0 {
            set(context, key, text);
        }
    }

    /// Sets an attribute that is a number.
    pub fn set_number(&self, key: &'static str, number: u32) {
        if let Some(context) = &self.0 {
            let number = KeyValue::new(key, i64::from(number));
            context.span().set_attribute(number);
        }
    }

    /// Sets the status of the span to error.
    pub fn fail(&self) {
        if let Some(context) = &self.0 {
            context.span().set_status(Status::Error {
                description: Cow::Borrowed(""),
            });
        }
    }

    /// Runs `work` for this span.
    pub async fn within<T>(&self, work: impl Future<Output = T>) -> T {
        match &self.0 {
            Some(context) => work.with_context(context.clone()).await,
            None => work.await,
        }
    }
}

impl Drop for TraceSpan {
    fn drop(&mut self) {
        // Threads that still work for it keep the context, and must not keep it open.
        if let Some(context) = &self.0 {
            context.span().end();
        }
    }
}

/// Sets an attribute of the span that this task or thread works for, as [`TraceSpan::set`].
pub fn set_on_current(key: &'static str, text: impl Display) {
    let context = Context::current();
    if context.has_active_span() {
        set(&context, key, text);
    }
}

fn set(context: &Context, key: &'static str, text: impl Display) {
    let text = KeyValue::new(key, text.to_string());
    context.span().set_attribute(text);
}

/// Links the span that this task or thread works for to another.
pub fn link_current(to: TraceContext) {
    let context = Context::current();
    context.span().add_link(to.span_context(), Vec::new());
}

#[cfg(test)]
mod tests {
    use super::TraceContext;

    #[test]
    fn a_traceparent_is_read_strictly() {
        let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parsed = TraceContext::parse(given).unwrap();
        let context = parsed.span_context();
        let trace = context.trace_id().to_string();
        assert_eq!(trace, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
        for wrong in [
            "",
            "00",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319cc-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ",
        ] {
            assert_eq!(TraceContext::parse(wrong), None, "{wrong:?}");
        }
    }
}
