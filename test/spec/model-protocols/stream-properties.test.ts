import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { settleFinishReason } from "../../../core/src/model-protocols/answer/finish-reason.ts";
import type { FinishReason, ModelEvent } from "../../../core/src/model-protocols/model-events.ts";
import {
  readChatCompletion,
  readChatStream,
  readMessage,
  readMessagesStream,
} from "../../../core/src/model-protocols/read-answer.ts";
import { writeChatCompletion, writeMessage } from "../../../core/src/model-protocols/write-answer.ts";
import { collectChatStream, collectMessagesStream } from "../../harness/stream-grammar.ts";
import { bytes, chatText, messagesText, readAll } from "./answer-streams.ts";

const words = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
const count = fc.nat(1_000);

/** The events of one block: a text, thinking, or a call whose arguments come in pieces. */
const block = fc.oneof(
  fc.array(words, { minLength: 1, maxLength: 3 }).map((pieces) => pieces.map((text): Draft => ({ type: "text", text }))),
  fc.array(words, { minLength: 1, maxLength: 3 }).map((pieces) => pieces.map((text): Draft => ({ type: "thinking", text }))),
  fc.tuple(words, words).map(([text, signature]): readonly Draft[] => [
    { type: "thinking", text },
    { type: "thinking-signature", signature },
  ]),
  words.map((data): readonly Draft[] => [{ type: "redacted-thinking", data }]),
  fc
    .tuple(fc.dictionary(words, fc.oneof(words, fc.integer(), fc.array(fc.boolean()))), fc.array(fc.nat(60), { maxLength: 3 }))
    .map(([input, cuts]) => call(input, cuts)),
);

type Draft = ModelEvent extends infer Event ? (Event extends { call: number } ? Omit<Event, "call"> : Event) : never;

/** A whole, valid answer: the blocks one after another, or pieces of tool calls between those of the next block. */
const answer = fc
  .tuple(
    fc.array(block, { maxLength: 6 }),
    fc.array(fc.boolean(), { maxLength: 40 }),
    fc.constantFrom<FinishReason>("end", "length", "tool", "stop-sequence", "refusal", "context-window", "pause"),
    fc.option(fc.record({ input: count, cacheRead: count, cacheWrite: count, output: count }), { nil: undefined }),
  )
  .map(([blocks, turns, reason, usage]): readonly ModelEvent[] => {
    let calls = 0;
    const numbered = blocks.map((drafts) => {
      const isCall = drafts.some((draft) => draft.type === "tool-start");
      const number = isCall ? calls : -1;
      if (isCall) calls += 1;
      return drafts.map(
        (draft) =>
          ("call" in draft || number < 0
            ? draft
            : { ...draft, call: number, ...(draft.type === "tool-start" && { id: `id_${number}` }) }) as ModelEvent,
      );
    });
    // Chat Completions says "stop" for a stop sequence and a pause, which after a tool call is taken for the call itself.
    const said = calls > 0 && (reason === "stop-sequence" || reason === "pause") ? "tool" : reason;
    const settled = settleFinishReason(said, { toolCalls: calls > 0, refused: false });
    return [
      { type: "start" },
      ...interleave(numbered, turns),
      ...(usage === undefined ? [] : [{ type: "usage", usage } as const]),
      { type: "finish", reason: settled },
    ];
  });

/** Any events in any order, as no reader would give them. */
const disorder = fc.array(
  fc.oneof(
    fc.constant<ModelEvent>({ type: "start" }),
    fc.string({ maxLength: 3 }).map((text): ModelEvent => ({ type: "text", text })),
    fc.string({ maxLength: 3 }).map((text): ModelEvent => ({ type: "refusal", text })),
    fc.string({ maxLength: 3 }).map((text): ModelEvent => ({ type: "thinking", text })),
    words.map((signature): ModelEvent => ({ type: "thinking-signature", signature })),
    fc.string().map((data): ModelEvent => ({ type: "redacted-thinking", data })),
    fc
      .tuple(fc.nat(3), fc.constantFrom("", "a", "b c", "toolu_1"), words)
      .map(([number, id, name]): ModelEvent => ({ type: "tool-start", call: number, id, name })),
    fc
      .tuple(fc.nat(3), fc.string({ maxLength: 4 }))
      .map(([number, json]): ModelEvent => ({ type: "tool-arguments", call: number, json })),
    fc.nat(3).map((number): ModelEvent => ({ type: "tool-end", call: number })),
    fc.record({ input: count, output: count }).map((usage): ModelEvent => ({ type: "usage", usage })),
  ),
  { maxLength: 25 },
);
const ending = fc.oneof(
  fc.constant<ModelEvent>({ type: "finish", reason: "end" }),
  words.map((text): ModelEvent => ({ type: "error", error: { kind: "upstream", message: text } })),
);

const MESSAGE = { id: "msg_1", model: "asked-model" };
const COMPLETION = { id: "chatcmpl-1", model: "asked-model", created: 1700000000 };

describe("conversion of arbitrary answers", () => {
  it("any events in any order give grammatical streams", () => {
    fc.assert(
      fc.property(disorder, ending, disorder, (events, end, late) => {
        messagesText([...events, end, ...late]);
        chatText([...events, end, ...late]);
      }),
      { numRuns: 500 },
    );
  });

  it("a stream says what the whole answer says", () => {
    fc.assert(
      fc.property(answer, (events) => {
        const whole = writeMessage(events, MESSAGE);
        const streamed = collectMessagesStream(messagesText(events));
        expect(streamed).toMatchObject({ content: whole.content, stopReason: whole.stop_reason, usage: whole.usage });
        const completion = writeChatCompletion(events, COMPLETION) as unknown as Completion;
        const chunks = collectChatStream(chatText(events));
        const [{ message, finish_reason }] = completion.choices;
        expect(chunks.content).toBe(message.content ?? "");
        expect(chunks.reasoning).toBe(message.reasoning_content ?? "");
        expect(chunks.reasoningDetails).toEqual(
          (message.reasoning_details ?? []).filter((detail) => "signature" in detail || "data" in detail),
        );
        expect(chunks.toolCalls).toEqual((message.tool_calls ?? []).map((each) => ({ id: each.id, ...each.function })));
        expect([chunks.finishReason, chunks.usage]).toEqual([finish_reason, completion.usage]);
      }),
    );
  });

  it("reading what was written gives the same answer back, in streams and whole", () => {
    fc.assert(
      fc.property(answer, (events) => {
        const message = writeMessage(events, MESSAGE);
        expect(writeMessage(readAll(readMessagesStream(), [bytes(messagesText(events))]), MESSAGE)).toEqual(message);
        expect(writeMessage(readMessage(message), MESSAGE)).toEqual(message);
        const completion = writeChatCompletion(events, COMPLETION);
        expect(writeChatCompletion(readAll(readChatStream(), [bytes(chatText(events))]), COMPLETION)).toEqual(completion);
        expect(writeChatCompletion(readChatCompletion(completion), COMPLETION)).toEqual(completion);
      }),
    );
  });

  it("the other protocol's stream carries the same content, in the same order", () => {
    fc.assert(
      fc.property(answer, (events) => {
        const throughChat = readAll(readChatStream(), [bytes(chatText(events))]);
        expect(writeMessage(throughChat, MESSAGE).content).toEqual(writeMessage(events, MESSAGE).content);
        const throughMessages = readAll(readMessagesStream(), [bytes(messagesText(events))]);
        expect(writeChatCompletion(throughMessages, COMPLETION).choices).toEqual(writeChatCompletion(events, COMPLETION).choices);
      }),
    );
  });

  it("any chunking of the bytes gives the same events", () => {
    fc.assert(
      fc.property(answer, fc.array(fc.nat(4_000), { maxLength: 30 }), fc.nat(200), (events, cuts, lost) => {
        for (const [read, text] of [
          [readMessagesStream, messagesText(events)],
          [readChatStream, chatText(events)],
        ] as const) {
          // A stream that lost its end must not depend on the chunks either.
          const all = bytes(text).subarray(0, -lost || undefined);
          expect(readAll(read(), split(all, cuts))).toEqual(readAll(read(), [all]));
        }
      }),
    );
  });
});

interface Completion {
  readonly usage?: object;
  readonly choices: readonly [
    {
      readonly finish_reason: string;
      readonly message: {
        readonly content: string | null;
        readonly reasoning_content?: string;
        readonly reasoning_details?: readonly object[];
        readonly tool_calls?: readonly { readonly id: string; readonly function: object }[];
      };
    },
  ];
}

function call(input: object, cuts: readonly number[]): readonly Draft[] {
  const json = JSON.stringify(input);
  const pieces = Object.keys(input).length === 0 ? [] : splitText(json, cuts);
  return [
    { type: "tool-start", id: "", name: "f" },
    ...pieces.map((piece): Draft => ({ type: "tool-arguments", json: piece })),
    { type: "tool-end" },
  ];
}

/** Takes from the first unfinished list, or, where a turn says so and it belongs to a call, from the one after it. */
function interleave(lists: readonly (readonly ModelEvent[])[], turns: readonly boolean[]): readonly ModelEvent[] {
  const queues = lists.map((list) => [...list]);
  const out: ModelEvent[] = [];
  for (let turn = 0; ; turn += 1) {
    const [first, second] = queues.filter((queue) => queue.length > 0);
    if (first === undefined) return out;
    const isBegun = first[0]?.type === "tool-arguments" || first[0]?.type === "tool-end";
    const queue = turns[turn] === true && isBegun && second !== undefined ? second : first;
    out.push(queue.shift() as ModelEvent);
  }
}

function split(all: Uint8Array, cuts: readonly number[]): readonly Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (all.length + 1)).sort((a, b) => a - b), all.length];
  return places.slice(1).map((end, at) => all.subarray(places[at], end));
}

function splitText(text: string, cuts: readonly number[]): readonly string[] {
  const places = [0, ...cuts.map((cut) => cut % (text.length + 1)).sort((a, b) => a - b), text.length];
  return places
    .slice(1)
    .map((end, at) => text.slice(places[at], end))
    .filter((piece) => piece !== "");
}
