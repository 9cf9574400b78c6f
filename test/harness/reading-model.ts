import { writeCompletion, writeCompletionChunks } from "./echo-chat.ts";
import { writeMessage, writeMessageEvents } from "./echo-messages.ts";
import type { EchoTurn } from "./echo-turn.ts";
import type { Answer } from "./upstream-exchange.ts";
import { schemaSample } from "./schema-sample.ts";
import { list, record, string } from "./untyped.ts";
import { empty, events, json } from "./upstream-answers.ts";

/** The text of the file, as the model read it. */
export const NOTE = "The lift works again.";

/**
 * A model for coding tools, in both protocols: it reads `file` with the tool that its caller offers for reading, and tells whether it
 * found {@link NOTE} there. A request without such a tool, as for the title of a conversation, gets a few words.
 */
export function readingModel(file: string): Answer {
  return async (exchange) => {
    const { request } = exchange;
    if (request.method !== "POST") return empty(404)(exchange);
    const body = record(await request.json());
    const turn = readingTurn(body, file);
    const isStream = body.stream === true;
    if (request.url.startsWith("/v1/messages")) {
      const id = `msg_${request.number}`;
      return isStream ? events(writeMessageEvents(turn, id))(exchange) : json(200, writeMessage(turn, id))(exchange);
    }
    const id = `chatcmpl-${request.number}`;
    const includeUsage = record(body.stream_options).include_usage === true;
    return isStream
      ? events(writeCompletionChunks(turn, id, includeUsage))(exchange)
      : json(200, writeCompletion(turn, id))(exchange);
  };
}

function readingTurn(body: Record<string, unknown>, file: string): EchoTurn {
  const model = string(body.model);
  const counted = { inputTokens: 10, outputTokens: 5 };
  const results = resultsIn(body);
  if (results !== "")
    return {
      model,
      text: results.includes(NOTE) ? `It says: ${NOTE}` : "It says nothing.",
      calls: [],
      finish: "end",
      ...counted,
    };
  const tool = list(body.tools)
    .map((each) => ("function" in record(each) ? record(record(each).function) : record(each)))
    .find(({ name }) => /^(?:read(?:_files?)?|view)$/i.test(string(name)));
  if (!tool) return { model, text: "A few words", calls: [], finish: "end", ...counted };
  const call = { id: "call_reading", name: string(tool.name), input: inputOf(tool.input_schema ?? tool.parameters, file) };
  return { model, text: "", calls: [call], finish: "tool", ...counted };
}

/** Each tool has its own name for the path, and some take a list. */
function inputOf(schema: unknown, file: string): unknown {
  const properties = record(record(schema).properties);
  const name = Object.keys(properties).find((key) => /^(?:file_?)?path$/i.test(key));
  if (name) return { [name]: file };
  const items = record(record(properties.files).items);
  return items.properties ? { files: [{ path: file }] } : schemaSample(schema);
}

function resultsIn(body: Record<string, unknown>): string {
  return list(body.messages)
    .map(record)
    .flatMap((message) => (message.role === "tool" ? [message] : list(message.content).map(record)))
    .filter((holder) => holder.role === "tool" || holder.type === "tool_result")
    .map((holder) => JSON.stringify(holder.content ?? ""))
    .join("\n");
}
