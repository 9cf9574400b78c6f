import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BodyFacts, BodyInvalid, BodyScan } from "../../../plugins/src/model-proxy/body-scan.ts";
import { propertyRuns } from "../../harness/property-runs.ts";

/** What a scan comes to: the facts, or where and why it refused. */
type Outcome = BodyFacts | { readonly refused: string };

/** Every rule of the grammar once or more, short enough to try every byte at every place. */
const EVERY_RULE = Buffer.from(
  String.raw`{"model":"m\u00eA\n","a":[0,-1.5e+3,10E-2,true,false,null,[],{}], "é" : {"b":"é模😀\\"}, "stream":false}`,
);

describe("the scanner and JSON.parse agree on what is valid, and on the facts", () => {
  it("for every text of JSON", () => {
    check(bodyText, (text) => {
      const bytes = Buffer.from(text);
      expect(judged(scanned([bytes]))).toEqual(parsed(bytes));
    });
  });

  it("for every text of JSON with a few bytes changed", () => {
    check(fc.tuple(bodyText, fc.array(change, { minLength: 1, maxLength: 4 })), ([text, changes]) => {
      const bytes = changes.reduce(changed, Buffer.from(text));
      expect(judged(scanned([bytes]))).toEqual(parsed(bytes));
    });
  });

  it("for random runs of the bytes that JSON is made of", () => {
    check(fc.array(piece, { maxLength: 6 }), (pieces) => {
      const bytes = Buffer.concat([Buffer.from('{"a":'), ...pieces, Buffer.from("}")]);
      expect(judged(scanned([bytes]))).toEqual(parsed(bytes));
    });
  });

  it("for long strings with a few bytes changed", () => {
    check(fc.tuple(fc.integer({ min: 250, max: 1_200 }), fc.array(change, { maxLength: 3 })), ([length, changes]) => {
      const bytes = changes.reduce(changed, Buffer.from(`{"a":"${"x".repeat(length)}","model":"m"}`));
      expect(judged(scanned([bytes]))).toEqual(parsed(bytes));
    });
  });

  it("for every byte at every place of a body that uses the whole grammar: replaced, inserted, removed", () => {
    for (let at = 0; at <= EVERY_RULE.length; at += 1) {
      const before = EVERY_RULE.subarray(0, at);
      const tails = [EVERY_RULE.subarray(at), EVERY_RULE.subarray(at + 1)];
      const candidates = [Buffer.concat([before, EVERY_RULE.subarray(at + 1)])];
      for (let byte = 0; byte < 256; byte += 1) {
        for (const tail of tails) candidates.push(Buffer.concat([before, Buffer.of(byte), tail]));
      }
      for (const bytes of candidates) {
        const found = judged(scanned([bytes]));
        const wanted = parsed(bytes);
        // A comparison by hand: 60,000 calls of expect would take longer than everything else here.
        if (JSON.stringify(found) !== JSON.stringify(wanted)) expect({ body: bytes.toString("latin1"), found }).toEqual(wanted);
      }
    }
    expect(judged(scanned([EVERY_RULE]))).toEqual({ model: "mê\n", stream: false, mistyped: undefined });
  });
});

describe("the facts and the refusal do not depend on how the body is cut into chunks", () => {
  it("for every text of JSON", () => {
    check(fc.tuple(bodyText, cuts), ([text, places]) => {
      const bytes = Buffer.from(text);
      expect(scanned(cut(bytes, places))).toEqual(scanned([bytes]));
    });
  });

  it("for every text of JSON with a few bytes changed", () => {
    check(fc.tuple(bodyText, fc.array(change, { minLength: 1, maxLength: 3 }), cuts), ([text, changes, places]) => {
      const bytes = changes.reduce(changed, Buffer.from(text));
      expect(scanned(cut(bytes, places))).toEqual(scanned([bytes]));
    });
  });

  it("for long strings, and a model about as long as it may be", () => {
    const long = fc.tuple(fc.integer({ min: 4090, max: 4102 }), fc.array(change, { maxLength: 2 }), cuts);
    check(
      long,
      ([length, changes, places]) => {
        const bytes = changes.reduce(changed, Buffer.from(`{"model":"${"m".repeat(length)}","a":"${"é".repeat(300)}"}`));
        expect(scanned(cut(bytes, places))).toEqual(scanned([bytes]));
      },
      300,
    );
  });

  it("down to single bytes, and at every single cut", () => {
    const whole = scanned([EVERY_RULE]);
    expect(scanned([...EVERY_RULE].map((byte) => Buffer.of(byte)))).toEqual(whole);
    for (let at = 0; at <= EVERY_RULE.length; at += 1) expect(scanned(cut(EVERY_RULE, [at / EVERY_RULE.length]))).toEqual(whole);
  });
});

const blank = fc.constantFrom("", "", "", " ", "\n\t", "\r\n ");

const number = fc.constantFrom(
  "0",
  "-0",
  "7",
  "-12",
  "3.14",
  "0.0",
  "1e9",
  "1E+9",
  "2.5e-300",
  "1e999",
  "123456789012345678901234567890",
);

/** One character of a string, in one of the ways that JSON can spell it. */
const character = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(..."abmodelstream {}[]:,'/é模😀\u007f\u2028\ufeff") },
  { weight: 1, arbitrary: fc.constantFrom('\\"', "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t") },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 0xffff }).map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`) },
  { weight: 1, arbitrary: fc.constantFrom("\\u006D", "\\u0065", "\\uD83D\\ude00", "\\ud800", "\\udfff") },
);

const text = fc.oneof(
  { weight: 8, arbitrary: fc.array(character, { maxLength: 12, size: "max" }).map((characters) => `"${characters.join("")}"`) },
  { weight: 1, arbitrary: fc.integer({ min: 200, max: 700 }).map((length) => `"${"x".repeat(length)}"`) },
);

const key = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.constantFrom("model", "stream", String.raw`mod\u0065l`, String.raw`\u0073tream`, String.raw`st\u0072eam`),
  },
  { weight: 3, arbitrary: fc.constantFrom("Model", "mode", "models", "messages", "streams", "__proto__", "constructor", "") },
);

const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(text, number, fc.constantFrom("true", "false", "null")),
    fc.tuple(blank, fc.array(fc.tuple(blank, tie("value"), blank).map(joined), { maxLength: 4 })).map(([space, items]) => {
      return `[${items.length === 0 ? space : items.join(",")}]`;
    }),
    fc.array(memberOf(tie("value")), { maxLength: 4 }).map((members) => `{${members.join(",")}}`),
  ),
}));

const modelMember = fc.tuple(
  blank,
  fc.constantFrom('"model"', '"model"', String.raw`"mod\u0065l"`),
  blank,
  fc.constant(":"),
  blank,
  text,
  blank,
);

const streamMember = fc.tuple(
  blank,
  fc.constant('"stream"'),
  blank,
  fc.constant(":"),
  blank,
  fc.constantFrom("true", "false", "null"),
  blank,
);

/** Mostly well-typed model and stream, so that a body often has both; and any member at all. */
const member = fc.oneof(modelMember.map(joined), streamMember.map(joined), memberOf(value), memberOf(value));

/** The text of a JSON object, with names, spellings, white space and repeated members as they come. */
const bodyText = fc
  .tuple(blank, fc.array(member, { maxLength: 5, size: "max" }), blank, blank)
  .map(([before, members, inside, after]) => `${before}{${members.join(",")}${inside}}${after}`);

/** Bytes that mean something to JSON or to UTF-8, and now and then any byte. */
const byte = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...Buffer.from('{}[]":,\\/ \t\n-+.eE019tfnulrsabx\0\u001f\u007f')) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      0x80,
      0x8f,
      0x90,
      0x9f,
      0xa0,
      0xbf,
      0xc0,
      0xc2,
      0xdf,
      0xe0,
      0xe2,
      0xed,
      0xef,
      0xf0,
      0xf3,
      0xf4,
      0xf5,
    ),
  },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 255 }) },
);

const token = fc.constantFrom(
  "[",
  "]",
  "{",
  "}",
  ",",
  ':"x"',
  ',"model":',
  ',"stream":',
  "true",
  "null",
  "1",
  "-0.5e1",
  '"x"',
  "[]",
  "{}",
);

const piece = fc.oneof(
  { weight: 4, arbitrary: token.map((spelled) => Buffer.from(spelled)) },
  { weight: 1, arbitrary: fc.array(byte, { minLength: 1, maxLength: 2 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc
      .array(byte, { maxLength: 2 })
      .map((bytes) => Buffer.concat([Buffer.from('"'), Buffer.from(bytes), Buffer.from('"')])),
  },
);

/** Replaces, inserts or removes at a place given as a part of the whole, so that it shrinks together with the body. */
interface Change {
  readonly kind: "replace" | "insert" | "remove";
  readonly place: number;
  readonly byte: number;
}

/** Every place alike: fast-check would rather try the ends. */
const part = fc.noBias(fc.integer({ min: 0, max: 10_000 })).map((tenThousandths) => tenThousandths / 10_000);

const change: fc.Arbitrary<Change> = fc.record({ kind: fc.constantFrom("replace", "insert", "remove"), place: part, byte });

const cuts = fc.array(part, { maxLength: 12 });

function memberOf(content: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const name = fc.oneof(
    key.map((spelled) => `"${spelled}"`),
    text,
  );
  return fc.tuple(blank, name, blank, fc.constant(":"), blank, content, blank).map(joined);
}

function joined(parts: readonly string[]): string {
  return parts.join("");
}

function changed(bytes: Buffer, { kind, place, byte: inserted }: Change): Buffer {
  const at = Math.floor(place * bytes.length);
  const after = bytes.subarray(kind === "insert" ? at : at + 1);
  return Buffer.concat([bytes.subarray(0, at), kind === "remove" ? Buffer.alloc(0) : Buffer.of(inserted), after]);
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = places.map((place) => Math.round(place * bytes.length)).sort((left, right) => left - right);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

function scanned(chunks: readonly Buffer[]): Outcome {
  const scan = new BodyScan();
  try {
    for (const chunk of chunks) scan.push(chunk);
    return scan.end();
  } catch (error) {
    if (error instanceof BodyInvalid) return { refused: error.message };
    throw error;
  }
}

/** Without the reason of a refusal: JSON.parse gives other ones. */
function judged(outcome: Outcome): BodyFacts | "refused" {
  return "refused" in outcome ? "refused" : outcome;
}

/** The same question, answered the plain way: decode, JSON.parse, look. */
function parsed(bytes: Uint8Array): BodyFacts | "refused" {
  let json: string;
  let body: unknown;
  try {
    json = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    body = JSON.parse(json);
  } catch {
    return "refused";
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) return "refused";
  const keys = topLevelKeys(json);
  if (["model", "stream"].some((watched) => keys.indexOf(watched) !== keys.lastIndexOf(watched))) return "refused";
  const { model, stream } = { model: own(body, "model"), stream: own(body, "stream") };
  const isModelWrong = model !== undefined && typeof model !== "string";
  const isStreamWrong = stream !== undefined && typeof stream !== "boolean";
  return {
    model: typeof model === "string" ? model : undefined,
    stream: typeof stream === "boolean" ? stream : undefined,
    mistyped: isModelWrong ? "model" : isStreamWrong ? "stream" : undefined,
  };
}

function own(body: object, name: string): unknown {
  const found: unknown = Object.getOwnPropertyDescriptor(body, name)?.value;
  return found === null ? undefined : found;
}

/** Of a text that is known to be JSON: a string before a colon is a key, and brackets outside of strings tell the level. */
function topLevelKeys(json: string): string[] {
  const keys: string[] = [];
  let level = 0;
  let lastString = "";
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:]/gs)) {
    if (token.startsWith('"')) lastString = token;
    else if (token === ":" && level === 1) keys.push(JSON.parse(lastString) as string);
    else if (token === "{" || token === "[") level += 1;
    else if (token === "}" || token === "]") level -= 1;
  }
  return keys;
}

function check<T>(arbitrary: fc.Arbitrary<T>, rule: (sample: T) => void, numRuns = propertyRuns(2_000)): void {
  fc.assert(fc.property(arbitrary, rule), { numRuns });
}
