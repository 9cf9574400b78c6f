import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import {
  BodyCut,
  createApp,
  defineContract,
  defineErrors,
  definePlugin,
  openUpload,
  reply,
  type Upload,
  UploadInvalid,
  type UploadOptions,
  UploadTooLarge,
} from "@portico/core";
import * as fc from "fast-check";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { hostKinds, openHost } from "../../harness/hosts.ts";

const BOUNDARY = "----portico0123456789";
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const FILE = 'Content-Disposition: form-data; name="file"; filename="a.txt"\r\nContent-Type: text/plain';
const HEAD_BYTES = 16 * 1024;
const TAIL_BYTES = 16 * 1024;

describe("an upload", () => {
  it("has the name, the type and the bytes of its one file", async () => {
    const upload = await open(form(part(FILE, "hello")));
    expect([upload.name, upload.mimeType]).toEqual(["a.txt", "text/plain"]);
    expect((await buffer(upload.stream)).toString()).toBe("hello");
  });

  it("is what a browser's FormData makes", async () => {
    const data = new FormData();
    data.append("file", new File([Buffer.from([0, 13, 10, 45, 45, 255])], 'Grüße "zwei".png', { type: "image/png" }));
    const { headers, body } = new Request("http://test", { method: "POST", body: data });
    const stream = Readable.fromWeb(body as never);
    const upload = await openUpload({ headers: { contentType: headers.get("content-type")! }, stream }, options());
    expect([upload.name, upload.mimeType]).toEqual(['Grüße "zwei".png', "image/png"]);
    expect([...(await buffer(upload.stream))]).toEqual([0, 13, 10, 45, 45, 255]);
  });

  it.each([
    ["quoted", 'filename="a b.txt"', "a b.txt"],
    ["a token", "filename=a.txt", "a.txt"],
    ["UTF-8", 'filename="日本語.txt"', "日本語.txt"],
    ["extended (RFC 5987)", "filename*=UTF-8''%E2%82%AC%20rates.txt", "€ rates.txt"],
    ["extended in latin1", "filename*=iso-8859-1'en'%A3.txt", "£.txt"],
    ["both ways, the extended first", "filename*=UTF-8''%E2%82%AC; filename=\"EUR\"", "€"],
    ["both ways, the extended last", "filename=\"EUR\"; filename*=UTF-8''%E2%82%AC", "€"],
    ["with an extension that is none", "filename=\"EUR\"; filename*=UTF-8''%FF", "EUR"],
    ["with a path of Windows", 'filename="C:\\dir\\a.txt"', "C:\\dir\\a.txt"],
    ["with quotes and a backslash in pairs (RFC 7578)", 'filename="a \\"b\\" \\\\ c.txt"', 'a "b" \\ c.txt'],
    ["with a backslash in a pair at its end", 'filename="a\\\\"', "a\\"],
    ["with a path", 'filename="../../etc/passwd"', "../../etc/passwd"],
    ["with control characters", 'filename="a\u0000\u0007\tb"', "a\u0000\u0007\tb"],
    ["with line ends and quotes as browsers write them", 'filename="%22a%22%0D%0A.txt"', '"a"\r\n.txt'],
    ["with line ends as extended names have them", "filename*=UTF-8''a%0Ab", "a\nb"],
    ["with a semicolon", 'filename="a;name=b.txt"', "a;name=b.txt"],
    ["long", `filename="${"x".repeat(300)}"`, "x".repeat(300)],
    ["empty", 'filename=""', ""],
  ])("has its name as it was written: %s", async (_what, parameter, name) => {
    const upload = await open(form(part(`Content-Disposition: form-data; name="file"; ${parameter}`, "x")));
    expect(upload.name).toBe(name);
    expect((await buffer(upload.stream)).toString()).toBe("x");
  });

  it("has its name in latin1 where it cannot be UTF-8", async () => {
    const [before, after] = form(part('Content-Disposition: form-data; name="file"; filename="caf@.txt"', "x")).split("@");
    const upload = await open([Buffer.from(before!), Buffer.from([0xe9]), Buffer.from(after!)]);
    expect(upload.name).toBe("café.txt");
    await buffer(upload.stream);
  });

  it.each([
    ["Content-Type: IMAGE/PNG; charset=x", "image/png"],
    ["content-TYPE:audio/ogg", "audio/ogg"],
    ["Content-Type: nonsense", "application/octet-stream"],
    ["X-More: 1", "application/octet-stream"],
  ])("has its type without parameters: %s", async (header, mimeType) => {
    const upload = await open(form(part(`${header}\r\nContent-Disposition: form-data; name="file"; filename="a"`, "x")));
    expect(upload.mimeType).toBe(mimeType);
    await buffer(upload.stream);
  });

  it.each([
    ["file", undefined],
    ["file", "file"],
    ["other", undefined],
    ["größer", "größer"],
  ])("may have the field %j where %j is asked for", async (name, field) => {
    const head = `Content-Disposition: form-data; name="${name}"; filename="a"`;
    const upload = await open(form(part(head, "x")), { ...(field !== undefined && { field }) });
    expect((await buffer(upload.stream)).toString()).toBe("x");
  });

  it.each([
    ["something before it", `before\r\n${form(part(FILE, "hello"))}`],
    ["a line end before it", `\r\n${form(part(FILE, "hello"))}`],
    ["something behind it", `${form(part(FILE, "hello"))}behind`],
    ["no line end behind it", form(part(FILE, "hello")).trimEnd()],
    ["blanks behind its boundaries", form(part(FILE, "hello")).replaceAll(/(?<=--portico\d+(?:--)?)\r\n/g, " \t \r\n")],
    ["a folded header", form(part(FILE.replace("; filename", ";\r\n filename"), "hello"))],
  ])("may have %s", async (_what, body) => {
    expect((await buffer((await open(body)).stream)).toString()).toBe("hello");
  });

  it.each([
    ["quoted", 'multipart/form-data; boundary="a b(c)"', "a b(c)"],
    ["beside other parameters", "Multipart/Form-Data; charset=utf-8; BOUNDARY=x", "x"],
    ["of 70 characters", `multipart/form-data; boundary=${"x".repeat(70)}`, "x".repeat(70)],
  ])("may have a boundary that is %s", async (_what, contentType, boundary) => {
    const upload = await open(form(part(FILE, "hello"), boundary), {}, contentType);
    expect((await buffer(upload.stream)).toString()).toBe("hello");
  });

  it("may be empty", async () => {
    expect((await buffer((await open(form(part(FILE, "")))).stream)).length).toBe(0);
  });

  it("may be as long as its limit, on the byte, however it is cut", async () => {
    for (const size of [1, 100, 65_536, 200_000]) {
      const file = "x".repeat(size);
      const upload = await open(form(part(FILE, file)), { maxBytes: size });
      expect((await buffer(upload.stream)).toString()).toBe(file);
      const longer = await open(form(part(FILE, `${file}x`)), { maxBytes: size }).catch((error: unknown) => error);
      const refusal = longer instanceof Error ? longer : await failure((longer as Upload).stream);
      expect(refusal).toBeInstanceOf(UploadTooLarge);
    }
  });

  it("is there before it has arrived", async () => {
    const body = new Readable({ read() {} });
    const [before] = form(part(FILE, "hello")).split("llo");
    body.push(before);
    const upload = await openUpload({ headers: { contentType: TYPE }, stream: body }, options());
    expect(upload.name).toBe("a.txt");
    upload.stream.destroy();
  });

  it("applies backpressure to its caller while the file is not read", async () => {
    let pulled = 0;
    const chunk = Buffer.alloc(64 * 1024, "x");
    const body = new Readable({
      read() {
        pulled++;
        this.push(pulled === 1 ? form(part(FILE, "")).split(`\r\n--${BOUNDARY}--`)[0]! : chunk);
      },
    });
    const upload = await openUpload({ headers: { contentType: TYPE }, stream: body }, options());
    let before = -1;
    while (before !== pulled) {
      before = pulled;
      for (let turn = 0; turn < 20; turn++) await nextTurn();
    }
    expect(pulled).toBeLessThan(10);
    // And continues when the handler reads again.
    let read = 0;
    for await (const bytes of upload.stream as AsyncIterable<Buffer>) {
      read += bytes.length;
      if (read > 64 * chunk.length) break;
    }
    expect(body.destroyed).toBe(true);
  });
});

describe("an upload is refused", () => {
  const LONG = "x".repeat(HEAD_BYTES);
  it.each([
    ["no boundary", "malformed", form(part(FILE, "x")), "multipart/form-data"],
    ["an empty boundary", "malformed", form(part(FILE, "x")), 'multipart/form-data; boundary=""'],
    ["a boundary of 71 characters", "malformed", form(part(FILE, "x")), `multipart/form-data; boundary=${"x".repeat(71)}`],
    ["a boundary that is none", "malformed", form(part(FILE, "x")), 'multipart/form-data; boundary="a\u00e9"'],
    ["another boundary than its body", "malformed", form(part(FILE, "x")), "multipart/form-data; boundary=other"],
    ["no content type that could be read", "malformed", form(part(FILE, "x")), ";"],
    ["an empty body", "malformed", ""],
    ["no part", "no_file", `--${BOUNDARY}--\r\n`],
    ["a field alone", "no_file", form(part('Content-Disposition: form-data; name="file"', "x"))],
    [
      "bytes without a file name",
      "no_file",
      form(part('Content-Disposition: form-data; name="file"\r\nContent-Type: application/octet-stream', "x")),
    ],
    ["a file under another name", "wrong_field", form(part(FILE.replace('"file"', '"files"'), "x"))],
    ["a part without a name", "malformed", form(part('Content-Disposition: form-data; filename="a"', "x"))],
    ["a part without a disposition", "malformed", form(part("Content-Type: text/plain", "x"))],
    ["a part with two dispositions", "malformed", form(part(`${FILE}\r\n${FILE}`, "x"))],
    ["a part of another disposition", "malformed", form(part(FILE.replace("form-data", "attachment"), "x"))],
    ["a part whose head has no end", "malformed", `--${BOUNDARY}\r\n${FILE}\r\n--${BOUNDARY}--\r\n`],
    ["a head with a bare line end", "malformed", form(part(FILE.replace("\r\n", "\n"), "x"))],
    ["more on the line of its boundary", "malformed", form(part(FILE, "x")).replace("\r\n", "X: 1\r\n")],
    ["no line end after its boundary", "malformed", form(part(FILE, "x")).replace("\r\n", "")],
    ["a file that is encoded", "malformed", form(part(`${FILE}\r\nContent-Transfer-Encoding: base64`, "eA=="))],
    ["too much before it", "malformed", `${LONG}\r\n${form(part(FILE, "x"))}`],
    ["too long a head", "malformed", form(part(`${FILE}\r\nX-Long: ${LONG}`, "x"))],
    ["too many headers", "malformed", form(part(`${FILE}${"\r\nA: 1".repeat(31)}`, "x"))],
  ])("with %s", async (_what, reason, body, contentType = TYPE) => {
    for (const size of [1, 7, 65_536]) {
      const error = await open(pieces(body, size), { field: "file" }, contentType).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(UploadInvalid);
      expect(error).toMatchObject({ reason, name: "UploadInvalid" });
    }
  });

  it.each([
    ["a second file", "second_part", form(part(FILE, "x") + part(FILE, "y"))],
    ["a second file that is the same", "second_part", form(part(FILE, "x") + part(FILE, "x"))],
    ["a second file behind blanks", "second_part", form(part(FILE, "x") + part(FILE, "y").replace("\r\n", " \t\r\n"))],
    ["blanks before the end of its last boundary", "malformed", form(part(FILE, "x")).replace(/--\r\n$/, " --\r\n")],
    ["a field behind it", "second_part", form(`${part(FILE, "x")}${part('Content-Disposition: form-data; name="n"', "1")}`)],
    ["a second part without a head", "second_part", form(`${part(FILE, "x")}--${BOUNDARY}\r\n\r\n`)],
    ["its boundary in the file", "malformed", form(part(FILE, `x\r\n--${BOUNDARY}y`))],
    ["its boundary at the beginning of the file", "malformed", form(part(FILE, `--${BOUNDARY}`))],
    ["half an end, twice", "malformed", `--${BOUNDARY}\r\n${FILE}\r\n\r\nx\r\n--${BOUNDARY}-\r\n--${BOUNDARY}-\r\n`],
    ["no end", "malformed", `--${BOUNDARY}\r\n${FILE}\r\n\r\nhello`],
    ["no end of its last boundary", "malformed", `--${BOUNDARY}\r\n${FILE}\r\n\r\nhello\r\n--${BOUNDARY}-`],
    ["too much behind it", "malformed", form(part(FILE, "x")) + "x".repeat(TAIL_BYTES)],
  ])("with %s, though its file was there: its stream breaks", async (_what, reason, body) => {
    for (const size of [1, 7, 65_536]) {
      const upload = await open(pieces(body, size)).catch((error: unknown) => error);
      const error = upload instanceof Error ? upload : await failure((upload as Upload).stream);
      expect(error).toBeInstanceOf(UploadInvalid);
      expect(error).toMatchObject({ reason });
    }
  });

  it.each([TAIL_BYTES, TAIL_BYTES + 1])("with more than 16 KiB behind it: %i", async (length) => {
    const { stream } = await open(`${form(part(FILE, "x")).trimEnd()}${"x".repeat(length)}`);
    if (length > TAIL_BYTES) expect(await failure(stream)).toBeInstanceOf(UploadInvalid);
    else expect((await buffer(stream)).toString()).toBe("x");
  });

  it("because of parts before or after the file, while these still arrive", async () => {
    const endless = (text: string) => {
      const body = new Readable({ read() {} });
      body.push(text);
      return openUpload({ headers: { contentType: TYPE }, stream: body }, options());
    };
    await expect(endless("x".repeat(HEAD_BYTES))).rejects.toThrow(UploadInvalid);
    const { stream } = await endless(`${form(part(FILE, "x"))}${"x".repeat(TAIL_BYTES)}`);
    expect(await failure(stream)).toBeInstanceOf(UploadInvalid);
  });

  it("and then its body is read no further", async () => {
    const body = Readable.from([
      Buffer.from(form(part('Content-Disposition: form-data; name="file"', "x"))),
      Buffer.from("more"),
    ]);
    await expect(openUpload({ headers: { contentType: TYPE }, stream: body }, options())).rejects.toThrow(UploadInvalid);
    expect(body.destroyed).toBe(true);
  });

  it.each([32, 33])("with more headers than 32: %i", async (count) => {
    const opening = open(form(part(`${FILE}${"\r\nA: 1".repeat(count - 2)}`, "x")));
    if (count > 32) await expect(opening).rejects.toThrow(UploadInvalid);
    else expect((await buffer((await opening).stream)).toString()).toBe("x");
  });

  it.each([HEAD_BYTES, HEAD_BYTES + 1])("when its file begins later than after 16 KiB: %i", async (length) => {
    const bare = `--${BOUNDARY}\r\n${FILE}\r\nX-Long: \r\n\r\n`.length;
    const opening = open(form(part(`${FILE}\r\nX-Long: ${"x".repeat(length - bare)}`, "x")));
    if (length > HEAD_BYTES) await expect(opening).rejects.toThrow(UploadInvalid);
    else expect((await buffer((await opening).stream)).toString()).toBe("x");
  });
});

describe("an upload that is broken off", () => {
  const begin = async (given: Partial<UploadOptions> = {}) => {
    const body = new Readable({ read() {} });
    body.push(form(part(FILE, "hello")).split("llo")[0]);
    const upload = await openUpload({ headers: { contentType: TYPE }, stream: body }, options(given));
    return { body, stream: upload.stream };
  };

  it("by its body breaks with the body's error", async () => {
    const { body, stream } = await begin();
    body.destroy(new BodyCut("gone"));
    expect(await failure(stream)).toBeInstanceOf(BodyCut);
  });

  it("by its body breaks before its head, too", async () => {
    const body = new Readable({ read() {} });
    const opening = openUpload({ headers: { contentType: TYPE }, stream: body }, options());
    body.destroy(new BodyCut("gone"));
    await expect(opening).rejects.toBeInstanceOf(BodyCut);
  });

  it("by a body that is closed without a word never ends as if it were whole", async () => {
    const { body, stream } = await begin();
    body.destroy();
    expect(await failure(stream)).toBeInstanceOf(Error);
  });

  it("by its signal breaks with the signal's reason, and so does its body", async () => {
    const given = new AbortController();
    const { body, stream } = await begin({ signal: given.signal });
    const reason = new Error("enough");
    given.abort(reason);
    expect(await failure(stream)).toBe(reason);
    expect(body.destroyed).toBe(true);
  });

  it("by a signal whose reason is not an Error still fails with an Error", async () => {
    const given = new AbortController();
    const { stream } = await begin({ signal: given.signal });
    given.abort("enough");
    expect(await failure(stream)).toMatchObject({ cause: "enough" });
  });

  it("before it is opened is not opened", async () => {
    const opening = open(form(part(FILE, "x")), { signal: AbortSignal.abort(new Error("enough")) });
    await expect(opening).rejects.toThrow("enough");
  });

  it("by its reader reads no further", async () => {
    const { body, stream } = await begin();
    stream.destroy();
    await new Promise((resolve) => body.once("close", resolve));
    expect(body.destroyed).toBe(true);
  });

  it("without a listener causes no unhandled error", async () => {
    const { body, stream } = await begin();
    body.destroy(new BodyCut("gone"));
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    expect(stream.errored).toBeInstanceOf(BodyCut);
  });
});

describe.each(hostKinds)("an upload to a route on a %s host", (kind) => {
  const errors = defineErrors({ no_form: { status: 400 }, too_large: { status: 413 } });
  const contract = defineContract(
    {
      surface: "agent",
      auth: "open",
      envelope: (error) => ({ error: error.code }),
      faults: { body_too_large: errors.too_large },
    },
    {
      take: {
        method: "POST",
        path: "/take",
        summary: "",
        accepts: ["multipart/form-data"],
        bodyAs: "stream",
        bodyLimit: 6_000_000,
        success: reply.json(v.object({ name: v.string(), sha256: v.string() }), 201),
        errors,
      },
    },
  );
  const takers = definePlugin({
    name: "takers",
    config: v.strictObject({}),
    needs: {},
    contract,
    setup: () => ({
      async take({ body, signal, fail }) {
        try {
          const { name, stream } = await openUpload(body, { field: "file", maxBytes: 5_000_000, signal });
          const hash = createHash("sha256");
          for await (const bytes of stream as AsyncIterable<Buffer>) hash.update(bytes);
          return { name, sha256: hash.digest("hex") };
        } catch (error) {
          if (error instanceof UploadInvalid) throw fail.no_form(error.reason, {}, error);
          if (error instanceof UploadTooLarge) throw fail.too_large(undefined, {}, error);
          throw error;
        }
      },
    }),
  });
  const send = async (field: string, size: number) => {
    // Time does not advance: cancelling Node's FormData stream before it has delivered everything causes an unhandled rejection.
    const app = await createApp({
      name: "takers",
      adapters: [manualClock({ clock: createManualClock() })],
      plugins: [takers({})],
    });
    await using host = await openHost(kind, app);
    const body = new FormData();
    body.append(field, new File([Buffer.alloc(size, "x")], "a.bin"));
    const response = await host.call("/take", { method: "POST", body });
    const answer: unknown = await response.json();
    await app.close();
    return [response.status, answer];
  };

  it("arrives whole", async () => {
    const sha256 = createHash("sha256").update(Buffer.alloc(5_000_000, "x")).digest("hex");
    expect(await send("file", 5_000_000)).toEqual([201, { name: "a.bin", sha256 }]);
  });

  it.each([
    ["another field", "files", 5_000_000, 400, "no_form"],
    ["a byte too much", "file", 5_000_001, 413, "too_large"],
    ["more than its route takes", "file", 7_000_000, 413, "too_large"],
  ])("with %s is refused in the area's words", async (_what, field, size, status, error) => {
    expect(await send(field, size)).toEqual([status, { error }]);
  });
});

describe("a form in any shape", () => {
  const boundary = "b";
  const contentType = `multipart/form-data; boundary=${boundary}`;
  const file = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    // Bytes that nearly are a boundary are the ones that matter.
    fc
      .array(fc.constantFrom("\r", "\n", "-", "b", "\r\n", "\r\n-", "\r\n--", "\r\n--a", "--b", "\r\r\n--", "x"), {
        maxLength: 60,
      })
      .map((parts) => new Uint8Array(Buffer.from(parts.join("")))),
  );
  const extra = fc.constantFrom(
    part('Content-Disposition: form-data; name="n"', "1", boundary),
    part(FILE, "y", boundary),
    `--${boundary}\r\n\r\n`,
    "\r\n",
    "--",
    "x",
  );
  const around = fc.oneof(
    { weight: 4, arbitrary: fc.constant("") },
    fc.string({ maxLength: 20 }),
    fc.constantFrom("\r\n", "--", "-b", "x".repeat(HEAD_BYTES), "x".repeat(TAIL_BYTES)),
  );
  const expectAsModel = async (body: Buffer, at: readonly number[]) => {
    const result = await outcome(cutAt(body, at), contentType);
    const { bytes, isHeadChanged } = model(body, boundary);
    if (result !== "refused" || !isHeadChanged) expect(result).toEqual(bytes);
  };
  const cuts = fc.array(fc.nat({ max: 400 }), { maxLength: 12 });

  it("is the same however it is cut, at every byte", async () => {
    const files = ["", "x", "\r\n", "\r\n--", "\r\n-\r\n--a\r\r\n--", "x--b"];
    for (const each of files) {
      const body = Buffer.from(form(part(FILE, each, boundary), boundary));
      for (let cut = 0; cut <= body.length; cut++) {
        const upload = await open([body.subarray(0, cut), body.subarray(cut)], {}, contentType);
        expect((await buffer(upload.stream)).toString()).toBe(each);
      }
    }
  });

  it("never ends well when it is cut off, at every byte", async () => {
    const body = Buffer.from(form(part(FILE, "a\r\n--", boundary), boundary));
    for (let length = 0; length < body.length - "\r\n".length; length++) {
      expect(await outcome([body.subarray(0, length)], contentType)).toBe("refused");
    }
  });

  it("is read as the simplest reader of whole forms does", async () => {
    await fc.assert(
      fc.asyncProperty(file, fc.array(extra, { maxLength: 2 }), around, around, cuts, async (bytes, more, before, behind, at) => {
        const opening = Buffer.from(`${before}--${boundary}\r\n${FILE}\r\n\r\n`);
        const body = Buffer.concat([opening, bytes, Buffer.from(`\r\n${more.join("")}--${boundary}--\r\n${behind}`)]);
        await expectAsModel(body, at);
      }),
      { numRuns: 600 },
    );
  });

  it("is read as that reader does when bytes of it are changed, lost, doubled or cut off", async () => {
    const change = fc.record({
      at: fc.nat({ max: 400 }),
      lost: fc.nat({ max: 6 }),
      put: fc.constantFrom("", "\r", "\n", "\r\n", "-", "--", "b", "--b", "\r\n--b", "\r\n--b--", ":", '"', "\u0000", "é"),
    });
    await fc.assert(
      fc.asyncProperty(file, fc.array(change, { minLength: 1, maxLength: 3 }), cuts, async (bytes, changes, at) => {
        const whole = Buffer.concat([
          Buffer.from(`--${boundary}\r\n${FILE}\r\n\r\n`),
          bytes,
          Buffer.from(`\r\n--${boundary}--\r\n`),
        ]);
        const body = changes.reduce((text, { at, lost, put }) => {
          const start = at % (text.length + 1);
          return Buffer.concat([text.subarray(0, start), Buffer.from(put), text.subarray(start + lost)]);
        }, whole);
        await expectAsModel(body, at);
      }),
      { numRuns: 1_500 },
    );
  });

  it("settles when its reader, its caller or its signal gives up at any time", async () => {
    const who = fc.constantFrom("reader", "caller", "signal");
    await fc.assert(
      fc.asyncProperty(file, cuts, who, fc.nat({ max: 8 }), async (bytes, at, gives, turns) => {
        const text = Buffer.concat([Buffer.from(`--${boundary}\r\n${FILE}\r\n\r\n`), bytes, Buffer.from(`\r\n--${boundary}--`)]);
        const given = new AbortController();
        const stream = Readable.from(cutAt(text, at), { objectMode: false, highWaterMark: 1 });
        const reading = openUpload({ headers: { contentType }, stream }, options({ signal: given.signal })).then(
          async (upload) => {
            if (gives === "reader") setImmediate(() => upload.stream.destroy());
            return buffer(upload.stream);
          },
        );
        const settled = reading.catch(() => "refused" as const);
        for (let turn = 0; turn < turns; turn++) await nextTurn();
        if (gives === "caller") stream.destroy();
        if (gives === "signal") given.abort();
        const result = await settled;
        if (result !== "refused") expect(result).toEqual(model(text, boundary).bytes);
      }),
      { numRuns: 300 },
    );
  });
});

/**
 * The bytes of a form's one file, or that it is refused: read at once, and as simply as can be. A head that is not the one that the forms here
 * are made with may be refused, too.
 */
function model(body: Buffer, boundary: string): { readonly bytes: Buffer | "refused"; readonly isHeadChanged: boolean } {
  const refused = { bytes: "refused", isHeadChanged: false } as const;
  const text = `\r\n${body.toString("latin1")}`;
  const delimiter = `\r\n--${boundary}`;
  const start = text.indexOf(delimiter);
  if (start < 0) return refused;
  const line = start + delimiter.length + /^[ \t]*/.exec(text.slice(start + delimiter.length))![0].length;
  const end = text.indexOf(delimiter, line);
  const head = text.indexOf("\r\n\r\n", line);
  if (!text.startsWith("\r\n", line) || end < 0 || head < 0 || head + 4 > end) return refused;
  if (!text.startsWith("--", end + delimiter.length)) return refused;
  const first = head + 4 - 2;
  const last = end - 2;
  if (first > HEAD_BYTES || body.length - last > TAIL_BYTES) return refused;
  return { bytes: body.subarray(first, last), isHeadChanged: text.slice(line + 2, head) !== FILE };
}

async function outcome(chunks: readonly Buffer[], contentType: string): Promise<Buffer | "refused"> {
  try {
    return await buffer((await open(chunks, {}, contentType)).stream);
  } catch (error) {
    expect(error).toBeInstanceOf(UploadInvalid);
    return "refused";
  }
}

function open(body: string | readonly Uint8Array[], given: Partial<UploadOptions> = {}, contentType = TYPE): Promise<Upload> {
  const stream = Readable.from(typeof body === "string" ? [Buffer.from(body)] : body, { objectMode: false });
  return openUpload({ headers: { contentType }, stream }, options(given));
}

function options(given: Partial<UploadOptions> = {}): UploadOptions {
  return { maxBytes: Number.MAX_SAFE_INTEGER, signal: new AbortController().signal, ...given };
}

function failure(stream: Readable): Promise<unknown> {
  return buffer(stream).then(
    () => "ended",
    (error: unknown) => error,
  );
}

function form(parts: string, boundary = BOUNDARY): string {
  const own = parts.replaceAll(`--${BOUNDARY}`, `--${boundary}`);
  return `${own}--${boundary}--\r\n`;
}

function part(head: string, bytes: string, boundary = BOUNDARY): string {
  return `--${boundary}\r\n${head}\r\n\r\n${bytes}\r\n`;
}

function pieces(body: string, size: number): Buffer[] {
  const bytes = Buffer.from(body);
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.subarray(index * size, (index + 1) * size));
}

function cutAt(body: Buffer, at: readonly number[]): Buffer[] {
  const points = [...new Set([0, ...at.map((each) => each % (body.length + 1)), body.length])].toSorted((a, b) => a - b);
  return points.slice(1).map((point, index) => body.subarray(points[index], point));
}
