import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { convertRequest, handedOver, setParameters } from "../../../core/src/model-protocols/convert-bytes.ts";
import { dataLength, parseLongData, writeLongData } from "../../../core/src/model-protocols/long-data.ts";
import { convertToResponses } from "../../../core/src/model-protocols/responses/convert-to-responses.ts";
import { writeRequest } from "../../../core/src/model-protocols/write-request.ts";

const MIB = 1024 * 1024;
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ";
const data = (bytes: number, head = "") =>
  head + "abcdefghijklmnopqrstuvwxyzABCDEF+/=-_0123456789".repeat(bytes / 47 + 1).slice(0, bytes);

const image = (length: number) => ({
  type: "image",
  source: { type: "base64", media_type: "image/png", data: data(length, PNG) },
});
const ask = (content: unknown, more: object = {}) => ({
  ...{ model: "m", max_tokens: 9, messages: [{ role: "user", content }] },
  ...more,
});
/** The bytes of a body, with the room after them that a large body has. */
const bytesOf = (body: unknown) => inRoom(JSON.stringify(body));

function inRoom(text: string): Buffer {
  const room = Buffer.alloc(Buffer.byteLength(text) + 64 * 1024);
  return room.subarray(0, room.write(text));
}

/** What the conversion of the whole, parsed body gives. */
function whole(from: "messages" | "chat-completions", body: object): unknown {
  return writeRequest(from, body as never, from === "messages" ? "chat-completions" : "messages", {}).body;
}

describe("requests with long data", () => {
  it.each([
    ["an image", "messages", ask([image(3 * MIB), { type: "text", text: "What is this?" }])],
    [
      "several images",
      "messages",
      ask([image(2 * MIB), image(MIB + 99), image(100), { type: "text", text: 'a "quoted" \\ text' }]),
    ],
    [
      "a document",
      "messages",
      ask([{ type: "document", source: { type: "base64", media_type: "application/pdf", data: data(2 * MIB) } }]),
    ],
    ["a text without an escape", "messages", ask(data(2 * MIB))],
    [
      "an image's data URL",
      "chat-completions",
      ask([{ type: "image_url", image_url: { url: `data:image/png;base64,${data(2 * MIB, PNG)}` } }]),
    ],
    ["a PDF in a part", "chat-completions", ask([{ type: "file", file: { file_data: data(2 * MIB), filename: "a.pdf" } }])],
    [
      "a text in a part, which is decoded",
      "chat-completions",
      ask([
        {
          type: "file",
          file: { file_data: `data:text/plain;base64,${Buffer.alloc(2 * MIB, "word ").toString("base64")}`, filename: "a.txt" },
        },
      ]),
    ],
    [
      "a tool's answer",
      "messages",
      ask([{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: data(2 * MIB) }] }]),
    ],
    [
      "arguments of a call",
      "chat-completions",
      {
        model: "m",
        max_tokens: 9,
        messages: [
          { role: "user", content: "a" },
          {
            role: "assistant",
            tool_calls: [
              {
                id: "t",
                type: "function",
                function: { name: "f", arguments: JSON.stringify({ data: data(2 * MIB), url: "a" }) },
              },
            ],
          },
          { role: "tool", tool_call_id: "t", content: "b" },
        ],
      },
    ],
  ] as const)("are converted as the whole document: %s", (_what, from, body) => {
    for (const isOwn of [false, true]) {
      const bytes = bytesOf(body);
      const converted = convertRequest(from, bytes, {}, isOwn);
      expect(Buffer.compare(Buffer.from(converted.body), Buffer.from(JSON.stringify(whole(from, body)))), `${isOwn}`).toBe(0);
      if (!isOwn) expect(Buffer.compare(bytes, bytesOf(body)), "the bytes of the caller stay as they are").toBe(0);
    }
  });

  it("are converted to Responses", () => {
    const url = `data:image/png;base64,${data(2 * MIB, PNG)}`;
    const { body } = convertToResponses(bytesOf(ask([image(2 * MIB)])), "owner");
    expect(JSON.stringify(JSON.parse(Buffer.from(body).toString())).includes(url)).toBe(true);
  });

  it("are written in any order, with data in any place", () => {
    const given = { x: { data: data(MIB + 1) }, y: { data: data(MIB + 5000, PNG) }, z: { text: data(MIB + 2) } };
    const orders = fc.tuple(fc.shuffledSubarray(["x", "y", "z", "x"]), fc.nat(9000), fc.nat(9000));
    fc.assert(
      fc.property(orders, fc.boolean(), ([names, before, between], hasRoom) => {
        const text = JSON.stringify({ a: "a".repeat(4000), ...given });
        const bytes = hasRoom ? inRoom(text) : Buffer.from(text);
        const from = parseLongData(bytes) as typeof given;
        const ordered = (of: typeof given) => [
          "b".repeat(before),
          ...names.flatMap((name) => [of[name as keyof typeof given], "c".repeat(between)]),
        ];
        const expected = JSON.stringify(ordered(given));
        expect(Buffer.compare(Buffer.from(writeLongData(ordered(from), bytes, true)), Buffer.from(expected))).toBe(0);
      }),
      { numRuns: 60 },
    );
  });

  it("get the parameters of their model", () => {
    const made = setParameters(bytesOf(ask([image(2 * MIB)])), { parameters: { fixed: { top_k: 3 } } });
    expect(Buffer.compare(Buffer.from(made), bytesOf(ask([image(2 * MIB)], { top_k: 3 })))).toBe(0);
  });

  it("get a note in place of an image of more bytes than Messages takes, as with its whole data", () => {
    const url = (length: number) =>
      ask([{ type: "image_url", image_url: { url: `data:image/png;base64,${data(length, PNG)}` } }]);
    for (const length of [6 * MIB, 8 * MIB]) {
      const { body } = convertRequest("chat-completions", bytesOf(url(length)), {});
      expect(Buffer.from(body).includes("too many bytes"), String(length)).toBe(length > 7 * MIB);
    }
  });

  it("keep each byte outside of long data, and its length: random documents", () => {
    const long = fc
      .record({ head: fc.constantFrom("", PNG, "data:image/png;base64,", "\\u00e9", "ä", '\\"', "word "), extra: fc.nat(2000) })
      .map(({ head, extra }) => `"${head}${data(MIB + extra)}"`);
    const short = fc.json({ maxDepth: 2 });
    const key = fc.constantFrom("data", "url", "text", "content", "file_data", "id", "arguments", 'da\\"ta', "x");
    const space = fc.constantFrom("", " ", "\n  ");
    const member = fc.tuple(key, space, fc.oneof({ weight: 1, arbitrary: long }, { weight: 3, arbitrary: short }));
    const document = fc
      .array(member, { minLength: 1, maxLength: 4 })
      .map((members) => `{${members.map(([name, blank, value], at) => `"${at}":{"${name}"${blank}:${blank}${value}}`).join()}}`);
    fc.assert(
      fc.property(document, fc.boolean(), (text, hasRoom) => {
        const bytes = hasRoom ? inRoom(text) : Buffer.from(text);
        const expected: Record<string, Record<string, unknown>> = JSON.parse(text);
        const parsed = parseLongData(bytes) as typeof expected;
        expect(Buffer.compare(Buffer.from(writeLongData(parsed, bytes, true)), Buffer.from(JSON.stringify(expected)))).toBe(0);
        for (const [name, members] of Object.entries(expected))
          for (const [inner, value] of Object.entries(members))
            if (typeof value === "string") expect(dataLength(parsed[name]![inner] as string)).toBe(value.length);
      }),
      { numRuns: 30 },
    );
  });

  it("keep an escape wherever it is before the data", () => {
    for (let before = 80 * 1024 - 8; before <= 80 * 1024; before++) {
      const text = `{"data":"${"A".repeat(before)}\\u00e9${data(MIB)}"}`;
      const written = writeLongData(parseLongData(Buffer.from(text)) as object, Buffer.from(text));
      expect(Buffer.compare(Buffer.from(written), Buffer.from(JSON.stringify(JSON.parse(text)))), String(before)).toBe(0);
    }
  });

  it("are moved to another thread only with a buffer that holds nothing else", () => {
    const room = 64 * 1024;
    const buffer = new ArrayBuffer(4 * MIB);
    expect(handedOver(new Uint8Array(buffer))).toEqual([buffer]);
    expect(handedOver(new Uint8Array(buffer, 0, 4 * MIB - room))).toEqual([buffer]);
    expect(handedOver(new Uint8Array(buffer, 0, 2 * MIB))).toEqual([]);
    expect(handedOver(new Uint8Array(buffer, room))).toEqual([]);
    expect(handedOver(new Uint8Array(buffer, 0, 2 * MIB), true)).toEqual([buffer]);
    expect(handedOver(Buffer.from("a small one"), true)).toEqual([]);
  });

  it("are parsed without the rest of their data", () => {
    const parsed = parseLongData(bytesOf(ask(data(2 * MIB)))) as { messages: { content: string }[] };
    expect(parsed.messages[0]!.content.length).toBeLessThan(MIB / 8);
  });
});
