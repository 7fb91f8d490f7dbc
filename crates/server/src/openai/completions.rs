//! `POST /v1/completions`: raw text, without the model's chat template.

use axum::Json;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};

use super::chat::{Head, Whole, choice, harmless, next_of, stream_options};
use super::sampling::{self, MOST_ANSWERS, MOST_STOPS};
use super::usage::{finish_reason, finite, usage};
use super::{cut_off, error, respond};
use crate::app::Client;
use crate::stream::{Out, written};
use crate::{Answer, App, Ask, Fields, Finish, Part, Prompt, Refusal, TokenInfo, Usage};

/// Prompts of one request.
const MOST_PROMPTS: usize = 64;

struct Completion {
    model: String,
    prompts: Vec<Prompt>,
    /// With an empty prompt.
    ask: Ask,
    n: usize,
    echo: bool,
    stream: bool,
    include_usage: bool,
}

pub(super) async fn create(
    State(app): State<App>,
    Extension(Client(client)): Extension<Client>,
    body: Bytes,
) -> Response {
    respond(answer(&app, client, &body).await)
}

async fn answer(app: &App, client: u64, body: &[u8]) -> Result<Response, Refusal> {
    let asked = read(body)?;
    let (mut answers, mut echoes) = (Vec::new(), Vec::new());
    for prompt in &asked.prompts {
        for i in 0..asked.n {
            let ask = Ask { prompt: prompt.clone(), ..choice(&asked.ask, i) };
            answers.push(app.answer(&asked.model, ask, client).await?);
            echoes.push(match prompt {
                Prompt::Text(text) if asked.echo => text.clone(),
                _ => String::new(),
            });
        }
    }
    let head = Head::of(&answers, "cmpl-");
    if asked.stream {
        let (n, include) = (asked.n, asked.include_usage);
        return Ok(written("text/event-stream", move |out| stream(out, head, answers, echoes, n, include)));
    }
    let (mut choices, mut counts) = (Vec::new(), Vec::new());
    for (i, (answer, echo)) in answers.into_iter().zip(echoes).enumerate() {
        let whole = Whole::read(answer).await?;
        counts.push(whole.usage);
        choices.push(json!({
            "index": i,
            "text": format!("{echo}{}", whole.text),
            "logprobs": asked.ask.logprobs.map(|_| logprobs(&whole.tokens, echo.len())),
            "finish_reason": finish_reason(&whole.finish),
        }));
    }
    let mut object = head.object("text_completion");
    object["choices"] = choices.into();
    object["usage"] = counted(&counts, asked.n);
    Ok(Json(object).into_response())
}

fn read(body: &[u8]) -> Result<Completion, Refusal> {
    let mut fields = Fields::of_body(body)?;
    let model = fields.text("model")?.unwrap_or_default();
    let prompts = prompts(&mut fields, "prompt")?;
    let n = fields.count("n")?.unwrap_or(1);
    if !(1..=MOST_ANSWERS).contains(&n) {
        return Err(fields.wrong("n", format!("expected 1 to {MOST_ANSWERS}")));
    }
    fields.only("best_of", &[json!(n)], "it must be equal to n")?;
    fields.only("suffix", &[json!("")], "filling in between texts is not supported")?;
    let echo = fields.flag("echo")?.unwrap_or(false);
    if echo && prompts.iter().any(|p| matches!(p, Prompt::Tokens(_))) {
        return Err(fields.wrong("echo", "it needs prompts of text"));
    }
    let stream = fields.flag("stream")?.unwrap_or(false);
    let include_usage = stream_options(&mut fields, stream)?;
    let logprobs = fields.count("logprobs")?;
    if logprobs.is_some_and(|n| n > 20) {
        return Err(fields.wrong("logprobs", "expected 0 to 20"));
    }
    if echo && logprobs.is_some() {
        return Err(fields.wrong("logprobs", "those of the prompt are not supported: leave echo out"));
    }
    let ask = Ask {
        sampling: sampling::sampling(&mut fields)?,
        // OpenAI's own default.
        max_tokens: Some(fields.count("max_tokens")?.unwrap_or(16)),
        stop: fields.texts("stop", MOST_STOPS)?,
        logprobs,
        format: sampling::format(&mut fields, "response_format")?,
        prompt: Prompt::Tokens(Vec::new()),
    };
    harmless(&mut fields)?;
    fields.finish()?;
    Ok(Completion { model, prompts, ask, n, echo, stream, include_usage })
}

/// A text, a list of texts, a list of token ids, or a list of such lists.
pub(super) fn prompts(fields: &mut Fields, name: &str) -> Result<Vec<Prompt>, Refusal> {
    let why = "expected a string, a list of strings, a list of token ids, or a list of such lists";
    let list = match fields.take(name) {
        None => return Err(fields.wrong(name, "this field is required")),
        Some(Value::String(text)) => return Ok(vec![Prompt::Text(text)]),
        Some(Value::Array(list)) if !list.is_empty() => list,
        Some(_) => return Err(fields.wrong(name, why)),
    };
    if let Some(tokens) = token_ids(&list) {
        return Ok(vec![Prompt::Tokens(tokens)]);
    }
    let most = if name == "input" { 2048 } else { MOST_PROMPTS };
    if list.len() > most {
        return Err(fields.wrong(name, format!("at most {most} are supported")));
    }
    let one = |value: Value| match value {
        Value::String(text) => Ok(Prompt::Text(text)),
        Value::Array(list) => token_ids(&list).map(Prompt::Tokens).ok_or_else(|| fields.wrong(name, why)),
        _ => Err(fields.wrong(name, why)),
    };
    list.into_iter().map(one).collect()
}

fn token_ids(list: &[Value]) -> Option<Vec<u32>> {
    list.iter().map(|v| v.as_u64().and_then(|id| u32::try_from(id).ok())).collect()
}

/// Counts, where each prompt counts once and not for each of its answers.
fn counted(counts: &[Usage], n: usize) -> Value {
    let mut all = usage(counts);
    let prompts: usize = counts.iter().step_by(n).map(|u| u.prompt_tokens).sum();
    let cached: usize = counts.iter().step_by(n).map(|u| u.cached_tokens).sum();
    let completion: usize = counts.iter().map(|u| u.completion_tokens).sum();
    all["prompt_tokens"] = prompts.into();
    all["prompt_tokens_details"]["cached_tokens"] = cached.into();
    all["total_tokens"] = (prompts + completion).into();
    all
}

/// Log-probabilities in the older form; `offset` is where the text of the tokens begins.
fn logprobs(tokens: &[TokenInfo], mut offset: usize) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut offsets = Vec::with_capacity(tokens.len());
    for token in tokens {
        offsets.push(offset);
        offset += text(&token.bytes).chars().count();
    }
    let top = |token: &TokenInfo| -> Value {
        token
            .top
            .iter()
            .map(|(bytes, p)| (text(bytes), json!(finite(*p))))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    json!({
        "tokens": tokens.iter().map(|t| text(&t.bytes)).collect::<Vec<_>>(),
        "token_logprobs": tokens.iter().map(|t| finite(t.logprob)).collect::<Vec<_>>(),
        "top_logprobs": tokens.iter().map(top).collect::<Vec<_>>(),
        "text_offset": offsets,
    })
}

async fn stream(
    out: Out,
    head: Head,
    answers: Vec<Answer>,
    echoes: Vec<String>,
    n: usize,
    include_usage: bool,
) {
    let mut counts = vec![Usage::default(); answers.len()];
    let mut offsets = vec![0; answers.len()];
    let mut answers: Vec<Option<Answer>> = answers.into_iter().map(Some).collect();
    let chunk = |index: usize, text: &str, logprobs: Option<Value>, finish: Option<&str>| {
        let mut object = head.object("text_completion");
        object["choices"] =
            json!([{"index": index, "text": text, "logprobs": logprobs, "finish_reason": finish}]);
        object
    };
    for (i, echo) in echoes.iter().enumerate().filter(|(_, echo)| !echo.is_empty()) {
        out.data(&chunk(i, echo, None, None)).await;
    }
    while let Some((i, part)) = next_of(&mut answers).await {
        match part {
            Part::Text { text, tokens } => {
                let told = (!tokens.is_empty()).then(|| logprobs(&tokens, offsets[i]));
                offsets[i] += text.chars().count();
                out.data(&chunk(i, &text, told, None)).await;
            }
            Part::Finished { finish: Finish::Cancelled, .. } => {
                out.data(&json!({"error": error(&cut_off())})).await;
                return;
            }
            Part::Finished { finish, usage } => {
                counts[i] = usage;
                out.data(&chunk(i, "", None, Some(finish_reason(&finish)))).await;
            }
            Part::Failed(refusal) => {
                out.data(&json!({"error": error(&refusal)})).await;
                return;
            }
            _ => {}
        }
    }
    if include_usage {
        let mut object = head.object("text_completion");
        object["choices"] = json!([]);
        object["usage"] = counted(&counts, n);
        out.data(&object).await;
    }
    out.send("data: [DONE]\n\n").await;
}
