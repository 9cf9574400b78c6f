import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createManualClock } from "@portico/adapters/clock/manual";
import { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Holder, TOKENS } from "../../harness/agent-app.ts";
import { jpeg, jpegSegment } from "../../harness/media-samples.ts";
import { type FilesService, png, startFilesService, type UploadedFile } from "../../harness/files-app.ts";

const PATH = "/api/media/upload";
const LINKS = "/api/media/access-urls";

let service: FilesService;
beforeEach(async () => {
  service = await startFilesService();
});
afterEach(() => service.close());

const upload = (file: UploadedFile, holder: Holder | null = "owner") => service.upload(holder ?? undefined, PATH, file);
const image = async (holder: Holder = "owner", bytes = png()) =>
  (await upload({ bytes, name: "tea.png", type: "image/png" }, holder)).body as { mediaId: string; size: number };
const links = (mediaIds: unknown, holder: Holder = "owner") => service.call(holder, "POST", LINKS, { mediaIds });
const read = (url: string, headers: Record<string, string> = {}, method = "GET") => fetch(service.url + url, { method, headers });
const told = ({ status, body }: { readonly status: number; readonly body: any }) => [status, body.error];
const kept = () =>
  readdirSync(service.filesDir, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && !["lock", ".format"].includes(entry.name),
  );
const missingId = "00000000-0000-4000-8000-000000000000.png";

describe("POST /api/media/upload (4.5)", () => {
  it("200 with the metadata; images have their dimensions", async () => {
    const { status, body } = await upload({ bytes: png(640, 480), name: "../tea.png", type: "image/png", field: "whatever" });
    expect([status, body]).toEqual([
      200,
      {
        type: "image",
        mediaId: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.png$/),
        name: "..tea.png",
        mimeType: "image/png",
        size: png().length,
        width: 640,
        height: 480,
      },
    ]);
  });

  it("a JPEG behind a large colour profile has its dimensions", async () => {
    const before = Array.from({ length: 100 }, () => jpegSegment(0xe2, Buffer.alloc(65_000)));
    const { status, body } = await upload({ bytes: jpeg(640, 480, { before }), name: "print.jpg", type: "image/jpeg" });
    expect([status, body]).toMatchObject([200, { width: 640, height: 480 }]);
  });

  it.each(["text/html", "image/svg+xml", "application/pdf", "image/bmp", "video/quicktime", "application/octet-stream", ""])(
    "415 for %j, and nothing is kept",
    async (type) => {
      expect((await upload({ bytes: png(), type })).status).toBe(415);
      expect(kept()).toEqual([]);
    },
  );

  it.each([
    ["HTML that says it is a PNG", "<!doctype html><script>alert(1)</script>"],
    ["a GIF that says it is a PNG", "GIF89a\x01\x00\x01\x00\x00\x00\x00;"],
    ["SVG that says it is a PNG", '<svg xmlns="http://www.w3.org/2000/svg"/>'],
    ["random bytes", randomBytes(5000)],
  ])("415 for %s, and nothing is kept (open points 6)", async (_what, bytes) => {
    expect(told(await upload({ bytes, type: "image/png" }))).toEqual([415, "media_type_unsupported"]);
    expect(kept()).toEqual([]);
  });

  it("400 for an empty file, and for no file", async () => {
    expect(told(await upload({ bytes: "", type: "image/png" }))).toEqual([400, "media_empty"]);
    const form = new FormData();
    form.append("file", "text");
    const answer = await fetch(service.url + PATH, {
      method: "POST",
      headers: { "x-agent-service-token": TOKENS.owner },
      body: form,
    });
    expect([answer.status, ((await answer.json()) as any).error]).toEqual([400, "media_file_required"]);
    expect(kept()).toEqual([]);
  });

  it("401 without a token", async () => {
    expect((await upload({ bytes: png(), type: "image/png" }, null)).status).toBe(401);
  });
});

describe("POST /api/media/access-urls (2.9, 4.5 rules 5-7)", () => {
  it("gives a link for each, once, in the order of their first occurrence; what is not there is missing", async () => {
    const [one, two] = [await image(), await image()];
    const { status, body } = await links([two.mediaId, missingId, one.mediaId, two.mediaId, missingId]);
    expect(status).toBe(200);
    expect(body.items.map(({ mediaId }: any) => mediaId)).toEqual([two.mediaId, one.mediaId]);
    expect(body.missing).toEqual([missingId]);
    const [{ url, expiresAt }] = body.items;
    const expires = Date.parse(expiresAt) / 1000;
    expect(url).toMatch(new RegExp(`^/media/${two.mediaId}\\?expires=${expires}&signature=[A-Za-z0-9_-]{43}$`));
    const left = Date.parse(expiresAt) - Date.now();
    expect(left).toBeGreaterThan(290_000);
    expect(left).toBeLessThanOrEqual(300_000);
  });

  it("media whose file is gone is reported missing, for its owner and for others; other media get their links (rule 6)", async () => {
    const [here, gone, foreign] = [await image(), await image(), await image("member")];
    for (const { mediaId } of [gone, foreign]) await service.app.port(ports.blobs).remove(`media/${mediaId}`);
    const { status, body } = await links([gone.mediaId, here.mediaId, foreign.mediaId]);
    expect([status, body.items.map(({ mediaId }: any) => mediaId), body.missing]).toEqual([
      200,
      [here.mediaId],
      [gone.mediaId, foreign.mediaId],
    ]);
  });

  it("another user's media is 403 media_owner_forbidden for all, without partial items", async () => {
    const [own, other] = [await image("owner"), await image("member")];
    const { status, body } = await links([own.mediaId, other.mediaId, missingId]);
    expect([status, body]).toEqual([403, { error: "media_owner_forbidden" }]);
  });

  it.each([
    ["no list", "x"],
    ["none", []],
    ["101", Array.from({ length: 101 }, () => missingId)],
    ["no text", [1]],
    ["a path", ["../../etc/passwd"]],
    ["capitals", [missingId.toUpperCase()]],
    ["no extension", [missingId.slice(0, 36)]],
    ["an extension that media do not have", [missingId.replace("png", "exe")]],
    ["two extensions", [`${missingId}.png`]],
  ])("400 for the whole request with %s", async (_what, mediaIds) => {
    expect((await links(mediaIds)).status).toBe(400);
    const own = await image();
    if (Array.isArray(mediaIds) && mediaIds.length === 1) expect((await links([own.mediaId, ...mediaIds])).status).toBe(400);
  });

  it("400 comes before 403: a malformed and a foreign ID together (open points 10)", async () => {
    const other = await image("member");
    expect((await links([other.mediaId, "x"])).status).toBe(400);
  });

  it("400 for further fields", async () => {
    const { mediaId } = await image();
    expect((await service.call("owner", "POST", LINKS, { mediaIds: [mediaId], more: 1 })).status).toBe(400);
  });

  it("every user may read media without an owner's record (open points 6)", async () => {
    const blobs = service.app.port(ports.blobs);
    await blobs.put(
      `media/${missingId}`,
      (async function* () {
        yield png();
      })(),
      { maxBytes: 1000 },
    );
    for (const holder of ["owner", "member"] as const) {
      const answer = await read(await service.link(holder, missingId));
      expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "image/png"]);
    }
  });

  it.each([
    ["jpeg", "image/jpeg"],
    ["mpga", "audio/mpeg"],
    ["oga", "audio/ogg"],
  ])("also under an extension that is not given any more: .%s (rule 5)", async (extension, type) => {
    const mediaId = missingId.replace("png", extension);
    mkdirSync(join(service.filesDir, "media"), { recursive: true });
    writeFileSync(join(service.filesDir, "media", mediaId), "old bytes");
    const answer = await read(await service.link("member", mediaId));
    expect([answer.status, answer.headers.get("content-type"), await answer.text()]).toEqual([200, type, "old bytes"]);
  });

  it("503 media_signing_unavailable where nothing can be signed", async () => {
    await using unsigned = await startFilesService({ signingKey: undefined });
    const { body } = await unsigned.upload("owner", PATH, { bytes: png(), type: "image/png" });
    expect(told(await unsigned.call("owner", "POST", LINKS, { mediaIds: [body.mediaId] }))).toEqual([
      503,
      "media_signing_unavailable",
    ]);
    const answer = await fetch(`${unsigned.url}/media/${body.mediaId}?expires=9999999999&signature=${"a".repeat(43)}`);
    expect(answer.status).toBe(503);
  });
});

describe("GET /media/:filename (4.5 rules 7-9)", () => {
  const bytes = png(2, 3, 1000);
  const linked = async () => service.link("owner", (await image("owner", bytes)).mediaId);

  it("200 without any token, as often as one likes, with the headers of the specification", async () => {
    const url = await linked();
    for (let time = 0; time < 2; time++) {
      const answer = await read(url);
      expect(answer.status).toBe(200);
      const headers = Object.fromEntries(answer.headers);
      expect(headers).toMatchObject({
        "content-type": "image/png",
        "content-length": `${bytes.length}`,
        "accept-ranges": "bytes",
        "x-content-type-options": "nosniff",
        "content-security-policy": "sandbox",
        "content-disposition": expect.stringMatching(/^inline/),
      });
      expect(headers["cache-control"]).toMatch(/^private, max-age=(?:29\d|300)$/);
      expect(Buffer.from(await answer.arrayBuffer())).toEqual(bytes);
    }
  });

  it("what is cached of it says that it depends on the origin: a picture that a page shows can be fetched by its script, too", async () => {
    const url = await linked();
    const whole = await read(url);
    const { status, headers } = await read(url, { "if-none-match": whole.headers.get("etag")! });
    expect([whole.headers.get("vary"), status, headers.get("vary")]).toEqual(["origin", 304, "origin"]);
    await whole.body?.cancel();
  });

  it("HEAD works with the link of a GET, without the bytes", async () => {
    const answer = await read(await linked(), {}, "HEAD");
    expect([answer.status, answer.headers.get("content-length"), await answer.text()]).toEqual([200, `${bytes.length}`, ""]);
  });

  const size = bytes.length;
  it.each([
    ["bytes=0-9", 0, 9],
    ["bytes=10-", 10, size - 1],
    ["bytes=-10", size - 10, size - 1],
    ["bytes=0-0", 0, 0],
    [`bytes=${size - 1}-`, size - 1, size - 1],
    [`bytes=5-${size + 100}`, 5, size - 1],
    [`bytes=-${size + 100}`, 0, size - 1],
  ])("%s is 206 with Content-Range and these bytes", async (range, start, end) => {
    const answer = await read(await linked(), { range });
    expect([answer.status, answer.headers.get("content-range")]).toEqual([206, `bytes ${start}-${end}/${size}`]);
    expect(answer.headers.get("content-length")).toBe(`${end - start + 1}`);
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(bytes.subarray(start, end + 1));
  });

  it.each([
    "bytes=0-1,3-4",
    `bytes=${size}-`,
    "bytes=5-2",
    "bytes=-0",
    "bytes=-",
    "bytes=a-b",
    "bytes",
    "items=0-1",
    "bytes=0-1, ",
  ])("%s is 416 with the length", async (range) => {
    const answer = await read(await linked(), { range });
    expect([answer.status, answer.headers.get("content-range"), await answer.json()]).toEqual([
      416,
      `bytes */${size}`,
      { error: "range_not_satisfiable" },
    ]);
  });

  it("If-None-Match and If-Modified-Since answer 304; If-Range decides whether a Range applies", async () => {
    const url = await linked();
    const { headers } = await read(url);
    const [etag, modified] = [headers.get("etag")!, headers.get("last-modified")!];
    expect((await read(url, { "if-none-match": etag })).status).toBe(304);
    expect((await read(url, { "if-none-match": '"other"' })).status).toBe(200);
    expect((await read(url, { "if-modified-since": modified })).status).toBe(304);
    expect((await read(url, { range: "bytes=0-1", "if-range": etag })).status).toBe(206);
    expect((await read(url, { range: "bytes=0-1", "if-range": '"other"' })).status).toBe(200);
  });

  it("304 and 412 say nothing of a content that they do not have (RFC 9110, 15.4.5)", async () => {
    const url = await linked();
    const told = async (headers: Record<string, string>) => {
      const answer = await read(url, headers);
      return [answer.status, ...["content-type", "content-disposition", "cache-control"].map((name) => answer.headers.get(name))];
    };
    expect(await told({ "if-none-match": "*" })).toEqual([304, null, null, expect.stringMatching(/^private, max-age=/)]);
    expect(await told({ "if-match": '"other"' })).toEqual([412, null, null, null]);
  });

  it("is good for five minutes and not a second longer", async () => {
    const clock = createManualClock();
    await using timed = await startFilesService({ clock });
    const { body } = await timed.upload("owner", PATH, { bytes: png(), type: "image/png" });
    const url = await timed.link("owner", body.mediaId);
    const status = async () => {
      const answer = await fetch(timed.url + url);
      return [answer.status, answer.ok ? "" : ((await answer.json()) as any).error];
    };
    await clock.advance(299_000);
    expect(await status()).toEqual([200, ""]);
    await clock.advance(1000);
    expect(await status()).toEqual([401, "media_signature_expired"]);
  });

  it("is cached for no longer than it is good, down to the second (rule 9)", async () => {
    const clock = createManualClock();
    await using timed = await startFilesService({ clock });
    const { body } = await timed.upload("owner", PATH, { bytes: png(), type: "image/png" });
    const url = await timed.link("owner", body.mediaId);
    const cached = async (init: RequestInit = {}) => (await fetch(timed.url + url, init)).headers.get("cache-control");
    const etag = (await fetch(timed.url + url)).headers.get("etag")!;
    const ways: RequestInit[] = [
      {},
      { method: "HEAD" },
      { headers: { range: "bytes=0-1" } },
      { headers: { "if-none-match": etag } },
    ];

    for (const [passes, left] of [
      [0, 300],
      [1, 299],
      [998, 299],
      [1, 299],
      [1, 298],
      [297_999, 1],
      [1, 0],
      [998, 0],
    ] as const) {
      await clock.advance(passes);
      for (const way of ways) expect(await cached(way)).toBe(`private, max-age=${left}`);
    }
    await clock.advance(1);
    expect((await fetch(timed.url + url)).status).toBe(401);
  });

  it("any change to a link makes it 401 invalid_media_signature", async () => {
    const [one, other] = [await linked(), (await image()).mediaId];
    const url = new URL(one, service.url);
    const [expires, signature] = [url.searchParams.get("expires")!, url.searchParams.get("signature")!];
    const changed = (name: string, value: string | undefined) => {
      const copy = new URL(url);
      if (value === undefined) copy.searchParams.delete(name);
      else copy.searchParams.set(name, value);
      return copy.pathname + copy.search;
    };
    const flipped = `${signature.slice(0, -1)}${signature.endsWith("A") ? "B" : "A"}`;
    const tampered = [
      one.replace(/media\/[^?]+/, `media/${other}`),
      changed("expires", `${Number(expires) + 1}`),
      changed("expires", `0${expires}`),
      changed("expires", `${expires}.0`),
      changed("expires", ` ${expires}`),
      changed("expires", undefined),
      changed("expires", ""),
      changed("signature", flipped),
      changed("signature", signature.slice(0, 42)),
      changed("signature", `${signature}=`),
      changed("signature", `${signature}A`),
      changed("signature", undefined),
      changed("signature", ""),
      `${url.pathname}?expires=${expires}&expires=${expires}&signature=${signature}`,
      `${url.pathname}?expires=${expires}&signature=${signature}&signature=${signature}`,
    ];
    for (const link of tampered) {
      const answer = await read(link);
      expect([link, answer.status, ((await answer.json()) as any).error]).toEqual([link, 401, "invalid_media_signature"]);
    }
    expect((await read(one)).status).toBe(200);
  });

  it("another key's signatures count for nothing (4.5 rule 10)", async () => {
    const url = await linked();
    const { dataDir } = service;
    await service.app.close();
    await using rotated = await startFilesService({ dataDir, signingKey: "another key" });
    const answer = await fetch(rotated.url + url);
    expect([answer.status, ((await answer.json()) as any).error]).toEqual([401, "invalid_media_signature"]);
  });

  it("404 media_not_found if the file is gone, also for a client that has just read it", async () => {
    const { mediaId } = await image();
    const url = await service.link("owner", mediaId);
    expect(await (await read(url)).bytes()).toEqual(new Uint8Array(png()));
    rmSync(join(service.filesDir, "media", mediaId));
    for (const range of ["bytes=0-", "bytes=0-3"]) {
      const answer = await read(url, { range });
      expect([answer.status, ((await answer.json()) as any).error]).toEqual([404, "media_not_found"]);
    }
    expect([(await read(url)).status, (await read(url, {}, "HEAD")).status]).toEqual([404, 404]);
  });

  it.each([
    ["shorter", ""],
    ["longer", "x".repeat(5000)],
  ])("500 where the file is %s than it was stored, and never an answer of another length than it says", async (_what, text) => {
    const { mediaId } = await image();
    const url = await service.link("owner", mediaId);
    writeFileSync(join(service.filesDir, "media", mediaId), text);
    for (const range of [undefined, "bytes=0-9", "bytes=40-"]) {
      const answer = await read(url, range === undefined ? {} : { range });
      expect([answer.status, ((await answer.json()) as any).error]).toEqual([500, "media_internal_error"]);
    }
    expect((await read(url, {}, "HEAD")).status).toBe(500);
  });

  it("a link replaces the token only for reading: other methods need the token, and a path with several segments does not exist (rule 9)", async () => {
    const url = await linked();
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) expect((await read(url, {}, method)).status).toBe(401);
    expect((await read(url, { "x-agent-service-token": TOKENS.owner }, "DELETE")).status).toBe(405);
    expect((await read(url.replace("/media/", "/media/x/"))).status).toBe(404);
    expect((await read(LINKS)).status).toBe(401);
  });
});
