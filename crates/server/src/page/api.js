// The server's interface: models, answers as they are written, counts. Addresses are relative: the page talks to where it came from.

/** What went wrong, in words for the reader. `kind`: "key", "busy", "network" or "server". */
export class ApiError extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

const UNREACHABLE = "The server can’t be reached. Is turbospark serve still running?";
const BROKEN = "The connection broke off before the answer was complete.";

const headers = (key) => ({ "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) });

async function request(path, key, options = {}) {
  let response;
  try {
    response = await fetch(path, { headers: headers(key), ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (key && /[^\x20-\x7e]/.test(key)) throw new ApiError("key", "The API key has characters that no key has.");
    throw new ApiError("network", UNREACHABLE);
  }
  if (response.ok) return response;
  throw await refused(response, key);
}

async function refused(response, key) {
  const body = await response.json().catch(() => null);
  const message = body?.error?.message ?? `The server answered ${response.status} ${response.statusText}`.trim();
  if (response.status === 401) {
    return new ApiError("key", key ? "The server doesn’t accept this API key." : "This server asks for an API key.");
  }
  if (response.status === 429) return new ApiError("busy", `The server is busy: try again ${when(response.headers.get("Retry-After"))}.`);
  return new ApiError("server", message);
}

/** `Retry-After` in words: it is seconds or a date. */
function when(header) {
  const seconds = header === null ? NaN : /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  if (Number.isNaN(seconds)) return "in a moment";
  const whole = Math.max(1, Math.ceil(seconds));
  return whole < 120 ? `in ${whole} second${whole === 1 ? "" : "s"}` : `in ${Math.ceil(whole / 60)} minutes`;
}

/** The models' names. */
export async function models(key) {
  const { data } = await (await request("v1/models", key)).json();
  return data.map(({ id }) => id);
}

/** The server's counts, or null where it tells none. */
export async function stats(key) {
  try {
    return await (await request("api/stats", key)).json();
  } catch {
    return null;
  }
}

/** The chunks of an answer. Ends with an error unless the server said that the answer is complete. */
export async function* chat(body, key, signal) {
  const response = await request("v1/chat/completions", key, { method: "POST", body: JSON.stringify(body), signal });
  try {
    for await (const data of events(response.body)) {
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new ApiError("server", chunk.error.message ?? "The server gave up on the answer.");
      yield chunk;
    }
  } catch (error) {
    if (error.name === "AbortError" || error instanceof ApiError) throw error;
    throw new ApiError("network", BROKEN);
  }
  throw new ApiError("network", BROKEN);
}

/** The data of server-sent events. */
async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let [rest, data] = ["", []];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines.map((line) => line.replace(/\r$/, ""))) {
        if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
        else if (line === "" && data.length) {
          yield data.join("\n");
          data = [];
        }
      }
    }
  } finally {
    // Also when the reader has had enough: closing the connection is what stops the server.
    reader.cancel().catch(() => {});
  }
}
