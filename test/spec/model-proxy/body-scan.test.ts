import { Buffer } from "node:buffer";
import { describe, expect, it } from "vitest";
import {
  type BodyFacts,
  BodyInvalid,
  BodyScan,
  MODEL_BYTES,
  NESTING_LEVELS,
  scanBody,
} from "../../../plugins/src/model-proxy/body-scan.ts";

const NOTHING: BodyFacts = { model: undefined, stream: undefined, mistyped: undefined };

describe("the facts of a body (specification 4.1)", () => {
  const table: [title: string, body: string, facts: Partial<BodyFacts>][] = [
    ["an empty object has neither", "{}", {}],
    ["model and stream are read", '{"model":"m-large","stream":true}', { model: "m-large", stream: true }],
    ["stream may be false", '{"stream":false,"model":"m"}', { model: "m", stream: false }],
    ["null counts as absent", '{"model":null,"stream":null}', {}],
    [
      "white space may stand around everything",
      ' \t\r\n{ "model" \n:\t"m" , "stream"\r: true } \n',
      { model: "m", stream: true },
    ],
    ["an empty model is given as it is", '{"model":""}', { model: "" }],
    [
      "escapes in the model are decoded",
      String.raw`{"model":"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}`,
      { model: 'a"\\/\b\f\n\r\té😀' },
    ],
    ["a model in other scripts is decoded", '{"model":"модель-é-模型-😀"}', { model: "модель-é-模型-😀" }],
    ["a lone surrogate written as an escape is JSON", String.raw`{"model":"\ud800"}`, { model: "\ud800" }],
    ["a key may be written with escapes", String.raw`{"mod\u0065l":"m","\u0073tream":true}`, { model: "m", stream: true }],
    [
      "a key may be written with nothing but escapes",
      String.raw`{"\u006d\u006f\u0064\u0065\u006c":"m","\u0073\u0074\u0072\u0065\u0061\u006D":true}`,
      { model: "m", stream: true },
    ],
    [
      "a key that only begins or ends alike is another",
      '{"models":"a","mode":"b","xmodel":"c","streams":true,"_stream":true}',
      {},
    ],
    ["an escape can make a key another one", String.raw`{"model\n":"a","\\model":"b","mod\u0045l":"c"}`, {}],
    ["keys differ by case", '{"Model":"a","STREAM":true}', {}],
    ["a model inside of another member does not count", '{"metadata":{"model":"a","stream":true},"tools":[{"model":"b"}]}', {}],
    ["a model inside of a string does not count", String.raw`{"system":"{\"model\":\"a\"}","x":",\"model\":\"b\""}`, {}],
    ["a string item that says model is no key", '{"stop":["model","stream"],"model":"m"}', { model: "m" }],
    ["a value that says model is no key", '{"user":"model","x":"stream","model":"m"}', { model: "m" }],
    ["model after a nested object is at top level again", '{"a":{"b":[{}]},"model":"m"}', { model: "m" }],
    ["members other than model and stream may come twice", '{"a":1,"a":2,"b":{"model":"x","model":"y"}}', {}],
  ];
  it.each(table)("%s", (_title, body, facts) => {
    expect(scanBody(Buffer.from(body))).toEqual({ ...NOTHING, ...facts });
  });

  const mistyped: [body: string, facts: Partial<BodyFacts>][] = [
    ['{"model":1}', { mistyped: "model" }],
    ['{"model":-1}', { mistyped: "model" }],
    ['{"model":true}', { mistyped: "model" }],
    ['{"model":false}', { mistyped: "model" }],
    ['{"model":["m"]}', { mistyped: "model" }],
    ['{"model":{"model":"m"}}', { mistyped: "model" }],
    ['{"stream":"true","model":"m"}', { model: "m", mistyped: "stream" }],
    ['{"stream":1,"model":"m"}', { model: "m", mistyped: "stream" }],
    ['{"stream":[true]}', { mistyped: "stream" }],
    ['{"stream":{}}', { mistyped: "stream" }],
    ['{"stream":0,"model":0}', { mistyped: "model" }],
    ['{"model":0,"stream":0}', { mistyped: "model" }],
    ['{"model":0,"stream":true}', { stream: true, mistyped: "model" }],
  ];
  it.each(mistyped)("a wrong type is told, not refused: %s", (body, facts) => {
    expect(scanBody(Buffer.from(body))).toEqual({ ...NOTHING, ...facts });
  });

  it("each fact can be read as soon as its value has passed", () => {
    const scan = new BodyScan();
    scan.push(Buffer.from('{"model":"m-lar'));
    expect(scan.model).toBeUndefined();
    scan.push(Buffer.from('ge",'));
    expect([scan.model, scan.stream]).toEqual(["m-large", undefined]);
    scan.push(Buffer.from('"stream":true,'));
    expect([scan.model, scan.stream, scan.mistyped]).toEqual(["m-large", true, undefined]);
    scan.push(Buffer.from('"messages":[]}'));
    expect(scan.end()).toEqual({ model: "m-large", stream: true, mistyped: undefined });
  });

  it("a wrong type can be read before the end", () => {
    const scan = new BodyScan();
    scan.push(Buffer.from('{"model":{'));
    expect(scan.mistyped).toBe("model");
  });

  it("a chunk may be reused as soon as it was taken", () => {
    const scan = new BodyScan();
    const body = Buffer.from(String.raw`{"mod\u0065l":"m-l\u00e4rge","stream":true}`);
    const chunk = Buffer.alloc(4);
    for (let from = 0; from < body.length; from += chunk.length) {
      const length = body.copy(chunk, 0, from);
      scan.push(chunk.subarray(0, length));
      chunk.fill(0);
    }
    expect(scan.end()).toEqual({ model: "m-lärge", stream: true, mistyped: undefined });
  });

  it("empty chunks change nothing", () => {
    const scan = new BodyScan();
    for (const part of ["", '{"model":"', "", 'm"', "", "}", ""]) scan.push(Buffer.from(part));
    expect(scan.end().model).toBe("m");
  });
});

describe("a body that is not a JSON object is refused at the first wrong byte (RFC 8259)", () => {
  const table: [body: string, offset: number, reason: string][] = [
    ["", 0, "the body is empty"],
    [" \n", 2, "the body is cut short"],
    ['{"model":"m"', 12, "the body is cut short"],
    ['{"a":"', 6, "the body is cut short"],
    ["[]", 0, "expected a JSON object"],
    ['"model"', 0, "expected a JSON object"],
    ["null", 0, "expected a JSON object"],
    ["1", 0, "expected a JSON object"],
    ["\ufeff{}", 0, "a byte order mark is not part of JSON"],
    ["{} \ufeff", 3, "expected nothing after the object"],
    ["{}{}", 2, "expected nothing after the object"],
    ["{},", 2, "expected nothing after the object"],
    ["{}}", 2, "expected nothing after the object"],
    ["{}\0", 2, "expected nothing after the object"],
    ["{,}", 1, "expected a member name or the end of the object"],
    ["{a:1}", 1, "expected a member name or the end of the object"],
    ["{'a':1}", 1, "expected a member name or the end of the object"],
    ["{]", 1, "expected a member name or the end of the object"],
    ["{1:1}", 1, "expected a member name or the end of the object"],
    ['{"a":1,}', 7, "expected a member name"],
    ['{"a":1,,"b":2}', 7, "expected a member name"],
    ['{"a"}', 4, "expected a colon"],
    ['{"a",1}', 4, "expected a colon"],
    ['{"model"}', 8, "expected a colon"],
    ['{"model":}', 9, "expected a value"],
    ['{"a":}', 5, "expected a value"],
    ['{"a"::1}', 5, "expected a value"],
    ['{"a":undefined}', 5, "expected a value"],
    ['{"a":NaN}', 5, "expected a value"],
    ['{"a":+1}', 5, "expected a value"],
    ['{"a":.5}', 5, "expected a value"],
    ['{"a":/**/1}', 5, "expected a value"],
    ['{"a":\u00a01}', 5, "expected a value"],
    ['{"a":\f1}', 5, "expected a value"],
    ['{"a":[1,]}', 8, "expected a value"],
    ['{"a":[,1]}', 6, "expected a value or the end of the array"],
    ['{"a":[}', 6, "expected a value or the end of the array"],
    ['{"a":[1}', 7, "expected a comma or the matching bracket"],
    ['{"a":{"b":1]}', 11, "expected a comma or the matching bracket"],
    ['{"a":[{}}', 8, "expected a comma or the matching bracket"],
    ['{"a":{"b":[]]', 12, "expected a comma or the matching bracket"],
    ['{"a":"b""c":1}', 8, "expected a comma or the matching bracket"],
    ['{"a":1 "b":2}', 7, "expected a comma or the matching bracket"],
    ['{"a":"b":1}', 8, "expected a comma or the matching bracket"],
    ['{"a":["b":1]}', 9, "expected a comma or the matching bracket"],
    ['{"a":truex}', 9, "expected a comma or the matching bracket"],
    ['{"a":True}', 5, "expected a value"],
    ['{"a":tru}', 8, "unknown literal"],
    ['{"a":fals }', 9, "unknown literal"],
    ['{"a":nul,', 8, "unknown literal"],
    ['{"a":nil}', 6, "unknown literal"],
    ['{"stream":tru}', 13, "unknown literal"],
    ['{"a":01}', 6, "expected the end of a number"],
    ['{"a":-01}', 7, "expected the end of a number"],
    ['{"a":1a}', 6, "expected the end of a number"],
    ['{"a":1.5.5}', 8, "expected the end of a number"],
    ['{"a":1e5.5}', 8, "expected the end of a number"],
    ['{"a":0x10}', 6, "expected the end of a number"],
    ['{"a":1_000}', 6, "expected the end of a number"],
    ['{"a":-}', 6, "expected a digit"],
    ['{"a":--1}', 6, "expected a digit"],
    ['{"a":-Infinity}', 6, "expected a digit"],
    ['{"a":1.}', 7, "expected a digit"],
    ['{"a":1.e5}', 7, "expected a digit"],
    ['{"a":1e}', 7, "expected an exponent"],
    ['{"a":1e+}', 8, "expected a digit"],
    ['{"a":1e+-5}', 8, "expected a digit"],
    ['{"a":"\n"}', 6, "control character in a string"],
    ['{"a":"\0"}', 6, "control character in a string"],
    ['{"a":"\u001f"}', 6, "control character in a string"],
    ['{"\t":1}', 2, "control character in a string"],
    ['{"model":"a\tb"}', 11, "control character in a string"],
    [String.raw`{"a":"\x41"}`, 7, "unknown escape in a string"],
    [String.raw`{"a":"\'"}`, 7, "unknown escape in a string"],
    [String.raw`{"a":"\U0041"}`, 7, "unknown escape in a string"],
    ['{"a":"\\\n"}', 7, "unknown escape in a string"],
    [String.raw`{"a":"\u004"}`, 11, "expected four hexadecimal digits"],
    [String.raw`{"a":"\u00g0"}`, 10, "expected four hexadecimal digits"],
    [String.raw`{"a":"\u"}`, 8, "expected four hexadecimal digits"],
  ];
  it.each(table)("%j at byte %i: %s", (body, offset, reason) => {
    expect(refusal(Buffer.from(body))).toMatchObject({ offset, message: `Invalid JSON body at byte ${offset}: ${reason}` });
  });

  it("a body that stops anywhere before its end is cut short", () => {
    const body = Buffer.from(String.raw`{"model":"m\u00e9é","stream":true,"n":[-1.5e+3,{"x":null}]}`);
    for (let length = 1; length < body.length; length += 1) {
      expect(refusal(body.subarray(0, length))).toMatchObject({ offset: length, message: expect.stringContaining("cut short") });
    }
    expect(scanBody(body).model).toBe("méé");
  });
});

describe("strings are UTF-8 (RFC 3629)", () => {
  const valid: [title: string, bytes: number[]][] = [
    ["the first of two bytes", [0xc2, 0x80]],
    ["the last of two bytes", [0xdf, 0xbf]],
    ["the first of three bytes", [0xe0, 0xa0, 0x80]],
    ["the last before the surrogates", [0xed, 0x9f, 0xbf]],
    ["the first after the surrogates", [0xee, 0x80, 0x80]],
    ["the last of three bytes", [0xef, 0xbf, 0xbf]],
    ["a byte order mark inside of a string", [0xef, 0xbb, 0xbf]],
    ["the first of four bytes", [0xf0, 0x90, 0x80, 0x80]],
    ["one from the middle of four bytes", [0xf2, 0x80, 0xbf, 0x80]],
    ["the last character of Unicode", [0xf4, 0x8f, 0xbf, 0xbf]],
    ["DEL, which JSON does not count as a control character", [0x7f]],
  ];
  it.each(valid)("%s is taken", (_title, bytes) => {
    expect(scanBody(withText(bytes)).model).toBe(Buffer.from(bytes).toString("utf8"));
  });

  // The offset counts from the first byte of the sequence: the refusal names the byte that makes it wrong.
  const invalid: [title: string, bytes: number[], offset: number][] = [
    ["a continuation without a lead", [0x80], 0],
    ["the last continuation without a lead", [0xbf], 0],
    ["an overlong slash", [0xc0, 0xaf], 0],
    ["an overlong character of two bytes", [0xc1, 0xbf], 0],
    ["an overlong character of three bytes", [0xe0, 0x9f, 0xbf], 1],
    ["an overlong character of four bytes", [0xf0, 0x8f, 0xbf, 0xbf], 1],
    ["the first surrogate", [0xed, 0xa0, 0x80], 1],
    ["the last surrogate", [0xed, 0xbf, 0xbf], 1],
    ["the first beyond Unicode", [0xf4, 0x90, 0x80, 0x80], 1],
    ["a lead beyond Unicode", [0xf5, 0x80, 0x80, 0x80], 0],
    ["the byte FE", [0xfe], 0],
    ["the byte FF", [0xff], 0],
    ["two bytes without their second", [0xc3], 1],
    ["three bytes without their third", [0xe2, 0x82], 2],
    ["four bytes without their fourth", [0xf0, 0x9f, 0x98], 3],
    ["a lead in place of a continuation", [0xe2, 0x82, 0xc3], 2],
  ];
  it.each(invalid)("%s is refused", (_title, bytes, offset) => {
    const at = '{"model":"'.length + offset;
    expect(refusal(withText(bytes))).toMatchObject({ offset: at, message: `Invalid JSON body at byte ${at}: invalid UTF-8` });
  });

  it("text outside of strings is refused", () => {
    expect(refusal(Buffer.from('{"a":é}'))).toMatchObject({ offset: 5, message: expect.stringContaining("expected a value") });
  });
});

describe("long strings", () => {
  // Long runs are read four bytes at a time: each stop must be seen wherever it stands in its word, and however memory is
  // aligned. The lead DC is wrong for what comes after it.
  const stops: [stop: number, after: number][] = [
    [0x00, 0],
    [0x0a, 0],
    [0x1f, 0],
    [0x80, 0],
    [0xa2, 0],
    [0xdc, 1],
    [0xff, 0],
  ];
  it.each(stops)("the byte %i is refused at every place of a long string", (stop, after) => {
    for (let shift = 0; shift < 4; shift += 1) {
      for (let place = 500; place < 512; place += 1) {
        const body = shifted(`{"a":"${"x".repeat(800)}"}`, shift);
        body[place] = stop;
        expect(refusal(body).offset).toBe(place + after);
      }
    }
  });

  it("the closing quote is seen at every place", () => {
    for (let shift = 0; shift < 4; shift += 1) {
      for (let length = 240; length < 280; length += 1) {
        expect(scanBody(shifted(`{"a":"${"x".repeat(length)}","model":"m"}`, shift)).model).toBe("m");
      }
    }
  });

  it("an escape is seen at every place", () => {
    for (let shift = 0; shift < 4; shift += 1) {
      for (let place = 500; place < 512; place += 1) {
        const escaped = `{"a":"${"x".repeat(place)}\\"${"x".repeat(300)}","model":"m"}`;
        expect(scanBody(shifted(escaped, shift)).model).toBe("m");
        expect(refusal(shifted(escaped.replace('\\"', "\\x"), shift)).offset).toBe('{"a":"'.length + place + 1);
      }
    }
  });

  it("every plain byte passes in a long string", () => {
    const plain = Array.from({ length: 0x80 - 0x20 }, (_, index) => String.fromCharCode(0x20 + index)).filter(
      (c) => !'"\\'.includes(c),
    );
    expect(scanBody(Buffer.from(`{"a":"${plain.join("").repeat(20)}","model":"m"}`)).model).toBe("m");
  });
});

describe("limits", () => {
  it("512 containers may be open at once, of both kinds", () => {
    expect(NESTING_LEVELS).toBe(512);
    const inner = NESTING_LEVELS - 1;
    expect(scanBody(Buffer.from(`{"a":${"[".repeat(inner)}${"]".repeat(inner)},"model":"m"}`)).model).toBe("m");
    const mixed = `{"a":${'[{"b":'.repeat(255)}[]${"}]".repeat(255)},"model":"m"}`;
    expect(scanBody(Buffer.from(mixed)).model).toBe("m");
  });

  it("one more is refused", () => {
    const body = `{"a":${"[".repeat(NESTING_LEVELS)}`;
    expect(refusal(Buffer.from(body))).toMatchObject({
      offset: body.length - 1,
      message: expect.stringMatching(/512 levels of nesting$/),
    });
  });

  it("containers side by side do not count as nested", () => {
    expect(scanBody(Buffer.from(`{"a":[${"[{}],".repeat(2_000)}0],"model":"m"}`)).model).toBe("m");
  });

  it("each closing bracket must match, at every depth", () => {
    for (let depth = 1; depth < NESTING_LEVELS; depth += 1) {
      const open = Array.from({ length: depth }, (_, level) => (level % 3 === 0 ? '{"k":' : "["));
      const close = open.map((bracket) => (bracket === "[" ? "]" : "}")).reverse();
      expect(scanBody(Buffer.from(`{"a":${open.join("")}0${close.join("")},"model":"m"}`)).model).toBe("m");
      close[close.length - 1] = "]";
      expect(() => scanBody(Buffer.from(`{"a":${open.join("")}0${close.join("")}}`))).toThrow(/matching bracket/);
    }
  });

  it("a model has at most 4096 bytes as it is spelled", () => {
    expect(MODEL_BYTES).toBe(4096);
    const longest = "m".repeat(MODEL_BYTES);
    expect(scanBody(Buffer.from(`{"model":"${longest}"}`)).model).toBe(longest);
    const offset = '{"model":"'.length + MODEL_BYTES;
    const message = `Invalid JSON body at byte ${offset}: a "model" of more than 4096 bytes`;
    expect(refusal(Buffer.from(`{"model":"${longest}m"}`))).toMatchObject({ offset, message });
    expect(refusal(Buffer.from(`{"model":"${"\\u006d".repeat(700)}"}`))).toMatchObject({ offset, message });
  });

  it("a model over its limit is refused before it ends, and before a later fault in it", () => {
    const scan = new BodyScan();
    expect(() => scan.push(Buffer.from(`{"model":"${"m".repeat(MODEL_BYTES + 1)}`))).toThrow(/more than 4096 bytes$/);
    expect(refusal(Buffer.from(`{"model":"${"m".repeat(MODEL_BYTES + 1)}\n"}`)).message).toMatch(/more than 4096 bytes$/);
    expect(refusal(Buffer.from(`{"model":"${"m".repeat(MODEL_BYTES)}\n"}`)).message).toMatch(/control character/);
  });

  it("other strings and keys have no limit of their own", () => {
    const long = "x".repeat(100_000);
    const scan = new BodyScan();
    for (const byte of Buffer.from(`{"${long}":"${long}","model":"m"}`)) scan.push(Uint8Array.of(byte));
    expect(scan.end().model).toBe("m");
  });
});

describe("a second model or stream at top level is refused: an upstream could read the other one", () => {
  const table: [body: string, member: string][] = [
    ['{"model":"a","model":"b"}', "model"],
    ['{"model":"a","model":"a"}', "model"],
    ['{"model":null,"model":"a"}', "model"],
    ['{"model":1,"x":[],"model":"a"}', "model"],
    ['{"stream":true,"model":"a","stream":false}', "stream"],
    [String.raw`{"model":"a","mod\u0065l":"b"}`, "model"],
    [String.raw`{"\u0073tream":true,"stream":true}`, "stream"],
  ];
  it.each(table)("%s", (body, member) => {
    expect(refusal(Buffer.from(body)).message).toMatch(new RegExp(`: a second "${member}"$`));
  });
});

describe("a refusal", () => {
  it("is a BodyInvalid by name, and contains nothing of the body's text", () => {
    const failure = refusal(Buffer.from('{"model":"secret-model","prompt":"secret\u0001prompt"}'));
    expect(failure).toBeInstanceOf(BodyInvalid);
    expect(failure.name).toBe("BodyInvalid");
    expect(String(failure.stack)).not.toContain("secret");
  });

  it("is final: every later call throws it again", () => {
    const scan = new BodyScan();
    expect(() => scan.push(Buffer.from('{"model":"m"]'))).toThrow(BodyInvalid);
    const again = expect.objectContaining({ offset: 12 });
    expect(() => scan.push(Buffer.from("}"))).toThrow(again);
    expect(() => scan.push(Buffer.alloc(0))).toThrow(again);
    expect(() => scan.end()).toThrow(again);
  });

  it("counts its offset over all chunks", () => {
    const scan = new BodyScan();
    scan.push(Buffer.from('{"a":1'));
    scan.push(Buffer.from(',"b":2'));
    expect(() => scan.push(Buffer.from(" ]"))).toThrow(expect.objectContaining({ offset: 13 }));
  });
});

function refusal(body: Uint8Array): BodyInvalid {
  try {
    scanBody(body);
  } catch (error) {
    if (error instanceof BodyInvalid) return error;
    throw error;
  }
  throw new Error("the body was taken");
}

function withText(bytes: number[]): Buffer {
  return Buffer.concat([Buffer.from('{"model":"'), Buffer.from(bytes), Buffer.from('"}')]);
}

/** The same bytes, beginning `shift` bytes after an aligned address. */
function shifted(text: string, shift: number): Uint8Array {
  const bytes = new Uint8Array(Buffer.byteLength(text) + shift).subarray(shift);
  bytes.set(Buffer.from(text));
  return bytes;
}
