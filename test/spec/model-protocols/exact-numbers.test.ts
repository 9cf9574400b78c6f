import { describe, expect, it } from "vitest";
import { convertRequest } from "../../../core/src/model-protocols/convert-bytes.ts";
import { type JsonObject, parseExactly, writeExactly } from "../../../core/src/model-protocols/json.ts";
import { readChatCompletion, readMessage } from "../../../core/src/model-protocols/read-answer.ts";
import { writeChatCompletion, writeMessage } from "../../../core/src/model-protocols/write-answer.ts";
import { chatText, messagesText, readChat, readMessages } from "./answer-streams.ts";

const INPUT = '{"id":9007199254740993,"deep":[-12345678901234567890.10,{"text":"9007199254740993","n":1.5}]}';
const SCHEMA = '{"type":"object","properties":{"id":{"type":"integer","maximum":9223372036854775807}}}';
const quoted = JSON.stringify(INPUT);

const convert = (from: "messages" | "chat-completions", body: string) =>
  Buffer.from(convertRequest(from, Buffer.from(body), {}).body).toString();
const parsed = (text: string) => parseExactly(text) as JsonObject;

describe("numbers of tools keep their digits", () => {
  it("in requests to Chat Completions", () => {
    const made = convert(
      "messages",
      `{"model":"m","max_tokens":9,"temperature":0.70000000000000001,"tools":[{"name":"f","input_schema":${SCHEMA}}],"messages":[` +
        `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":${INPUT}}]},` +
        `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"9007199254740993"}]}]}`,
    );
    expect(made).toContain(`"arguments":${quoted}`);
    expect(made).toContain(`"parameters":${SCHEMA}`);
    expect(JSON.parse(made)).toMatchObject({ temperature: 0.7 });
  });

  it("in requests to Messages", () => {
    const made = convert(
      "chat-completions",
      `{"model":"m","max_tokens":9,"tools":[{"type":"function","function":{"name":"f","parameters":${SCHEMA}}}],"messages":[` +
        `{"role":"user","content":"hi"},` +
        `{"role":"assistant","tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":${quoted}}}]},` +
        `{"role":"tool","tool_call_id":"t1","content":"9007199254740993"}]}`,
    );
    expect(made).toContain(`"input":${INPUT}`);
    expect(made).toContain(`"input_schema":${SCHEMA}`);
  });

  it("in whole answers", () => {
    const message = `{"type":"message","model":"m","content":[{"type":"tool_use","id":"t1","name":"f","input":${INPUT}}],"stop_reason":"tool_use"}`;
    const chat = writeExactly(writeChatCompletion(readMessage(parsed(message)), { id: "c", model: "m", created: 1 }));
    expect(chat).toContain(`"arguments":${quoted}`);
    for (const written of [quoted, INPUT]) {
      const completion = `{"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":[{"id":"t1","type":"function","function":{"name":"f","arguments":${written}}}]}}]}`;
      const answer = writeExactly(writeMessage(readChatCompletion(parsed(completion)), { id: "m", model: "m" }));
      expect(answer).toContain(`"input":${INPUT}`);
    }
  });

  it("in streams, in pieces or in one", () => {
    const event = (name: string, fields: string) => `event: ${name}\ndata: {"type":"${name}",${fields}}\n\n`;
    const messages =
      event("message_start", `"message":{"model":"m","content":[]}`) +
      event("content_block_start", `"index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":${INPUT}}`) +
      event("content_block_stop", `"index":0`) +
      event("message_delta", `"delta":{"stop_reason":"tool_use"}`) +
      event("message_stop", `"x":0`);
    expect(chatText(readMessages(messages))).toContain(`"arguments":${quoted}`);
    const whole = `data: {"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","function":{"name":"f","arguments":${INPUT}}}]}}]}\n\n`;
    const ending = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n`;
    expect(messagesText(readChat(whole, ending))).toContain(`"partial_json":${quoted}`);
    expect(
      messagesText(
        readChat(
          whole.replace(INPUT, () => quoted),
          ending,
        ),
      ),
    ).toContain(`"partial_json":${quoted}`);
  });

  it("where a text or an object is expected, and are refused", () => {
    const ask = (content: string) => `{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":${content}}]}`;
    expect(() => convert("messages", ask("9007199254740993"))).toThrow("messages.0.content");
    expect(() => convert("messages", ask('[{"type":"tool_use","id":"t","name":"f","input":9007199254740993}]'))).toThrow(
      "must be an object",
    );
  });
});
