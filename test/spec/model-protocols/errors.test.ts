import { describe, expect, it } from "vitest";
import { errorBody, errorStatus, streamErrorEvent } from "../../../core/src/model-protocols/errors.ts";
import type { ModelError, ModelErrorKind } from "../../../core/src/model-protocols/model-events.ts";
import { ERROR_MESSAGE_CHARACTERS, readUpstreamError } from "../../../core/src/model-protocols/read-upstream-error.ts";

const chat = (error: object) => JSON.stringify({ error });
const messages = (type: string) => JSON.stringify({ type: "error", error: { type, message: "m" } });

describe("errors of upstreams", () => {
  it.each<readonly [number, ModelErrorKind]>([
    [400, "invalid-request"],
    [401, "authentication"],
    [402, "billing"],
    [403, "permission"],
    [404, "not-found"],
    [408, "timeout"],
    [409, "invalid-request"],
    [413, "too-large"],
    [422, "invalid-request"],
    [429, "rate-limit"],
    [500, "upstream"],
    [502, "upstream"],
    [503, "overloaded"],
    [504, "timeout"],
    [529, "overloaded"],
  ])("status %i without a body is %s", (status, kind) => {
    for (const body of [undefined, "", "  \n"]) {
      expect(readUpstreamError("messages", status, body)).toEqual({
        kind,
        message: `The provider answered with status ${status} and no body.`,
      });
    }
  });

  it.each<readonly [string, ModelErrorKind]>([
    ["invalid_request_error", "invalid-request"],
    ["authentication_error", "authentication"],
    ["billing_error", "billing"],
    ["permission_error", "permission"],
    ["not_found_error", "not-found"],
    ["request_too_large", "too-large"],
    ["rate_limit_error", "rate-limit"],
    ["timeout_error", "timeout"],
    ["overloaded_error", "overloaded"],
  ])("a Messages error of type %s is %s and comes back under the same name", (type, kind) => {
    const error = readUpstreamError("messages", 400, messages(type));
    expect(error).toEqual({ kind, message: "m" });
    expect(errorBody("messages", error)).toEqual({ type: "error", error: { type, message: "m" } });
  });

  it.each<readonly [string, number, object, ModelErrorKind]>([
    ["a wrong key", 401, { message: "m", type: "invalid_request_error", code: "invalid_api_key", param: null }, "authentication"],
    [
      "a model that is not there",
      404,
      { message: "m", type: "invalid_request_error", code: "model_not_found", param: "model" },
      "not-found",
    ],
    ["no more money, said with 429", 429, { message: "m", type: "insufficient_quota", code: "insufficient_quota" }, "billing"],
    ["a limit of tokens", 429, { message: "m", type: "tokens", code: "rate_limit_exceeded" }, "rate-limit"],
    [
      "a prompt that is too long",
      400,
      { message: "m", type: "invalid_request_error", code: "context_length_exceeded", param: "messages" },
      "invalid-request",
    ],
    ["a server's own failure", 500, { message: "m", type: "server_error", code: null }, "upstream"],
    ["a code that is a status", 400, { message: "m", code: 400, status: "INVALID_ARGUMENT" }, "invalid-request"],
    ["resources exhausted", 429, { message: "m", code: 429, status: "RESOURCE_EXHAUSTED" }, "rate-limit"],
  ])("a Chat Completions error: %s", (_title, status, error, kind) => {
    expect(readUpstreamError("chat-completions", status, chat(error))).toMatchObject({ kind, message: "m" });
  });

  it("keeps the provider's code and parameter for the callers of Chat Completions", () => {
    const error = readUpstreamError(
      "chat-completions",
      400,
      chat({ message: "Bad", type: "invalid_request_error", param: "messages.0", code: "bad_thing" }),
    );
    expect(errorBody("chat-completions", error)).toEqual({
      error: { message: "Bad", type: "invalid_request_error", param: "messages.0", code: "bad_thing" },
    });
    const detailed = JSON.stringify({
      type: "error",
      error: { type: "billing_error", message: "m", details: { error_code: "spend_limit" } },
    });
    expect(readUpstreamError("messages", 402, detailed)).toEqual({ kind: "billing", message: "m", code: "spend_limit" });
  });

  it.each([
    ["a sentence under error", '{"error":"model is loading"}', "model is loading"],
    ["a message without error", '{"message":"nope","type":"x"}', "nope"],
    ["a detail", '{"detail":"Not allowed"}', "Not allowed"],
    ["a list of details", '{"detail":[{"loc":["body"],"msg":"field required"}]}', "field required"],
    [
      "a list of details with the fields they lie in",
      '{"detail":[{"loc":["body","messages",0,"content"],"msg":"Field required","input":{"secret":1}},{"loc":["query","beta"],"msg":"not a boolean"}]}',
      "messages.0.content: Field required; query.beta: not a boolean",
    ],
    [
      "details inside the message",
      '{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted","input":32000}]},"type":"invalid_request_error","param":null,"code":null}',
      "max_completion_tokens: Extra inputs are not permitted",
    ],
    [
      "a message that is a list of details",
      '{"object":"Error","message":[{"loc":["body","tools"],"msg":"Extra inputs are not permitted","input":["secret"]}]}',
      "tools: Extra inputs are not permitted",
    ],
    [
      "a message that quotes such details as text",
      JSON.stringify({ message: '{"detail":[{"loc":["body","n"],"msg":"Input should be 1","input":"secret"}]}' }),
      "n: Input should be 1",
    ],
    ["a detail that is an object", '{"detail":{"message":"no such deployment"}}', "no such deployment"],
    [
      "what the provider behind a gateway said, as quoted JSON",
      JSON.stringify({
        error: {
          message: "Provider returned error",
          metadata: { raw: '{"error":{"message":"max_tokens is too large","type":"bad"}}', provider_name: "Behind" },
        },
      }),
      "Provider returned error: max_tokens is too large",
    ],
    [
      "what the provider behind a gateway said, as an object and as text",
      JSON.stringify([
        { error: { message: "Provider returned error", metadata: { raw: { detail: [{ loc: ["body"], msg: "too long" }] } } } },
      ]),
      "Provider returned error: too long",
    ],
    [
      "what the provider behind a gateway said twice",
      '{"error":{"message":"model is busy, try later","metadata":{"raw":"model is busy"}}}',
      "model is busy, try later",
    ],
    [
      "a page that the provider behind a gateway sent",
      '{"error":{"message":"Provider returned error","metadata":{"raw":"<html>secret</html>"}}}',
      "Provider returned error",
    ],
    ["quoted JSON that says nothing", '{"error":{"message":"{\\"a\\":1}"}}', '{"a":1}'],
    ["a list of errors", '[{"error":{"message":"wrapped"}}]', "wrapped"],
    ["a JSON string", '"just words"', "just words"],
    ["plain text", "upstream connect error", "upstream connect error"],
    ["JSON without a sentence", '{"ok":false}', "The provider answered with status 400."],
    ["JSON that is no object", "17", "The provider answered with status 400."],
    [
      "HTML",
      "<!DOCTYPE html><html><body>secret</body></html>",
      "The provider answered with status 400 and a page instead of an error.",
    ],
    [
      "a status in angle brackets, of DashScope (cloudwego/eino#994)",
      '{"error":{"message":"<400> InternalError.Algo.InvalidParameter: no"}}',
      "<400> InternalError.Algo.InvalidParameter: no",
    ],
    ["HTML inside JSON", '{"error":{"message":"<html>secret</html>"}}', "The provider answered with status 400."],
  ])("finds the sentence in %s", (_title, body, expected) => {
    for (const protocol of ["messages", "chat-completions"] as const) {
      const { param: _param, ...error } = readUpstreamError(protocol, 400, body);
      expect(error).toEqual({ kind: "invalid-request", message: expected });
    }
  });

  it("names the field of the first fault as the parameter, for callers of Chat Completions", () => {
    const faults = [
      { loc: ["body"], msg: "bad" },
      { loc: ["body", "messages", 0], msg: "bad" },
    ];
    for (const body of [{ detail: faults }, { message: { detail: faults } }, { message: faults }])
      expect(readUpstreamError("chat-completions", 422, JSON.stringify(body)).param).toBe("messages.0");
    const spoken = { detail: [{ loc: ["body", "two words"], msg: "bad" }] };
    expect(readUpstreamError("chat-completions", 422, JSON.stringify(spoken))).not.toHaveProperty("param");
  });

  it("limits the depth of quoted errors and the number of reported faults", () => {
    let quoted = JSON.stringify({ message: "innermost" });
    for (let depth = 0; depth < 20; depth++) quoted = JSON.stringify({ message: quoted });
    expect(readUpstreamError("chat-completions", 400, quoted).message).not.toBe("");
    const detail = Array.from({ length: 50 }, (_, index) => ({ loc: ["body", index], msg: "bad" }));
    expect(readUpstreamError("chat-completions", 400, JSON.stringify({ detail })).message.split("; ")).toHaveLength(8);
  });

  it("cuts a long sentence, never inside a character", () => {
    const long = `${"x".repeat(ERROR_MESSAGE_CHARACTERS - 1)}👩 and more`;
    const { message } = readUpstreamError("messages", 400, JSON.stringify({ error: { message: long } }));
    expect(message).toHaveLength(ERROR_MESSAGE_CHARACTERS);
    expect(message.isWellFormed()).toBe(true);
  });

  it("takes no prose for a code or a parameter", () => {
    const error = readUpstreamError("chat-completions", 400, chat({ message: "m", code: "two words", param: "x".repeat(200) }));
    expect(error).toEqual({ kind: "invalid-request", message: "m" });
  });
});

describe("errors for callers", () => {
  const KINDS: readonly (readonly [ModelErrorKind, number, string, string, string | null])[] = [
    ["invalid-request", 400, "invalid_request_error", "invalid_request_error", null],
    ["authentication", 401, "authentication_error", "authentication_error", "invalid_api_key"],
    ["billing", 402, "billing_error", "insufficient_quota", "insufficient_quota"],
    ["permission", 403, "permission_error", "permission_error", null],
    ["not-found", 404, "not_found_error", "not_found_error", null],
    ["too-large", 413, "request_too_large", "invalid_request_error", "request_too_large"],
    ["rate-limit", 429, "rate_limit_error", "rate_limit_error", "rate_limit_exceeded"],
    ["internal", 500, "api_error", "server_error", null],
    ["upstream", 502, "api_error", "server_error", "upstream_error"],
    ["overloaded", 503, "overloaded_error", "server_error", "overloaded"],
    ["timeout", 504, "timeout_error", "server_error", "timeout"],
  ];

  it.each(KINDS)(
    "%s: status %i, %s in Messages, %s with code %s in Chat Completions",
    (kind, status, messagesType, type, code) => {
      const error: ModelError = { kind, message: "m" };
      expect(errorStatus("chat-completions", kind)).toBe(status);
      expect(errorStatus("messages", kind)).toBe(kind === "overloaded" ? 529 : status);
      expect(errorBody("messages", error)).toEqual({ type: "error", error: { type: messagesType, message: "m" } });
      expect(errorBody("chat-completions", error)).toEqual({ error: { message: "m", type, param: null, code } });
    },
  );

  it.each(KINDS)("%s keeps its meaning through the body of either protocol", (kind, status) => {
    const meaning = kind === "internal" ? "upstream" : kind;
    for (const protocol of ["messages", "chat-completions"] as const) {
      const body = JSON.stringify(errorBody(protocol, { kind, message: "m" }));
      expect(readUpstreamError(protocol, status, body).kind).toBe(meaning);
    }
  });

  it("ends a stream in the caller's protocol", () => {
    const error: ModelError = { kind: "timeout", message: "line\nbreak" };
    expect(streamErrorEvent("messages", error)).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"timeout_error","message":"line\\nbreak"}}\n\n',
    );
    expect(streamErrorEvent("chat-completions", error)).toBe(
      'data: {"error":{"message":"line\\nbreak","type":"server_error","param":null,"code":"timeout"}}\n\n',
    );
  });
});
