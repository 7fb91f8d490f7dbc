//! A response as events.
//!
//! Invariant: events are numbered from 0 without a gap; each item that is added is done before the next is added.

use serde_json::{Value, json};

use super::super::chat::Whole;
use super::super::{cut_off, error};
use super::{Head, finished, items};
use crate::stream::Out;
use crate::{Answer, App, Finish, Part, Refusal, ids};

/// The item that is being written.
enum Open {
    Reasoning { id: String, text: String },
    Message { id: String, text: String },
    Call { id: String, call_id: String, name: String, arguments: String },
}

struct Events {
    out: Out,
    number: usize,
    done: Vec<Value>,
    open: Option<Open>,
}

pub(super) async fn stream(out: Out, app: App, head: Head, mut answer: Answer) {
    let mut events = Events { out, number: 0, done: Vec::new(), open: None };
    events.send("response.created", json!({"response": head.object("in_progress", &[], None)})).await;
    events.send("response.in_progress", json!({"response": head.object("in_progress", &[], None)})).await;
    let mut whole = Whole::new();
    while let Some(part) = answer.next().await {
        events.part(&part).await;
        if let Err(refusal) = whole.take(part) {
            return events.failed(&head, &refusal).await;
        }
    }
    if whole.finish == Finish::Cancelled {
        return events.failed(&head, &cut_off()).await;
    }
    if whole.text.is_empty() && whole.calls.is_empty() {
        events.part(&Part::Text { text: String::new(), tokens: Vec::new() }).await;
    }
    events.close().await;
    let kind = if whole.finish == Finish::Length { "response.incomplete" } else { "response.completed" };
    let done = std::mem::take(&mut events.done);
    let response = finished(&app, head, &whole, &done);
    events.send(kind, json!({"response": response})).await;
}

impl Events {
    async fn send(&mut self, kind: &str, fields: Value) {
        let mut event = json!({"type": kind, "sequence_number": self.number});
        if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
            event.extend(fields);
        }
        self.number += 1;
        self.out.event(kind, &event).await;
    }

    async fn failed(&mut self, head: &Head, refusal: &Refusal) {
        let mut response = head.object("failed", &[], None);
        let told = error(refusal);
        response["error"] = json!({"code": "server_error", "message": told["message"]});
        self.send("response.failed", json!({"response": response})).await;
    }

    async fn part(&mut self, part: &Part) {
        let index = |events: &Events| events.done.len();
        match part {
            Part::Reasoning(delta) => {
                if !matches!(self.open, Some(Open::Reasoning { .. })) {
                    self.close().await;
                    let id = ids::new("rs_");
                    let item = items::reasoning(&id, None);
                    self.open = Some(Open::Reasoning { id, text: String::new() });
                    self.send(
                        "response.output_item.added",
                        json!({"output_index": index(self), "item": item}),
                    )
                    .await;
                }
                let at = index(self);
                let Some(Open::Reasoning { id, text }) = &mut self.open else { return };
                text.push_str(delta);
                let fields = json!({"item_id": id, "output_index": at, "content_index": 0, "delta": delta});
                self.send("response.reasoning_text.delta", fields).await;
            }
            Part::Text { text: delta, .. } => {
                if !matches!(self.open, Some(Open::Message { .. })) {
                    self.close().await;
                    let (id, at) = (ids::new("msg_"), index(self));
                    let item = items::message(&id, "in_progress", None);
                    self.open = Some(Open::Message { id: id.clone(), text: String::new() });
                    self.send("response.output_item.added", json!({"output_index": at, "item": item})).await;
                    let fields = json!({"item_id": id, "output_index": at, "content_index": 0, "part": items::part("")});
                    self.send("response.content_part.added", fields).await;
                }
                let at = index(self);
                let Some(Open::Message { id, text }) = &mut self.open else { return };
                text.push_str(delta);
                let fields = json!({
                    "item_id": id, "output_index": at, "content_index": 0, "delta": delta, "logprobs": [],
                });
                if !delta.is_empty() {
                    self.send("response.output_text.delta", fields).await;
                }
            }
            Part::CallStart { id: call_id, name, .. } => {
                self.close().await;
                let id = ids::new("fc_");
                let item = items::call(&id, "in_progress", call_id, name, "");
                let (call_id, name) = (call_id.clone(), name.clone());
                self.open = Some(Open::Call { id, call_id, name, arguments: String::new() });
                self.send("response.output_item.added", json!({"output_index": index(self), "item": item}))
                    .await;
            }
            Part::CallArguments { delta, .. } => {
                let at = index(self);
                let Some(Open::Call { id, arguments, .. }) = &mut self.open else { return };
                arguments.push_str(delta);
                let fields = json!({"item_id": id, "output_index": at, "delta": delta});
                self.send("response.function_call_arguments.delta", fields).await;
            }
            Part::CallEnd { .. } => self.close().await,
            Part::Started { .. } | Part::Finished { .. } | Part::Failed(_) => {}
        }
    }

    /// Ends the open item.
    async fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let at = self.done.len();
        let item = match open {
            Open::Reasoning { id, text } => {
                let fields = json!({"item_id": id, "output_index": at, "content_index": 0, "text": text});
                self.send("response.reasoning_text.done", fields).await;
                items::reasoning(&id, Some(&text))
            }
            Open::Message { id, text } => {
                let place = json!({"item_id": id, "output_index": at, "content_index": 0});
                let mut fields = place.clone();
                fields["text"] = text.clone().into();
                fields["logprobs"] = json!([]);
                self.send("response.output_text.done", fields).await;
                let mut fields = place;
                fields["part"] = items::part(&text);
                self.send("response.content_part.done", fields).await;
                items::message(&id, "completed", Some(&text))
            }
            Open::Call { id, call_id, name, arguments } => {
                let fields = json!({"item_id": id, "output_index": at, "name": name, "arguments": arguments});
                self.send("response.function_call_arguments.done", fields).await;
                items::call(&id, "completed", &call_id, &name, &arguments)
            }
        };
        self.done.push(item.clone());
        self.send("response.output_item.done", json!({"output_index": at, "item": item})).await;
    }
}
