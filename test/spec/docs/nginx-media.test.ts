import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { memoryBlobs } from "@portico/adapters/blobs/memory";
import { createManualClock } from "@portico/adapters/clock/manual";
import { Pool } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALLOWED_ORIGIN } from "../../harness/agent-app.ts";
import { type FilesService, png, startFilesService } from "../../harness/files-app.ts";
import { hasNginx, type Nginx, startNginx } from "../../harness/nginx.ts";
import { shippedNginx } from "../../harness/shipped-nginx.ts";
import { readPage } from "./pages.ts";

const PAGE = "docs/guides/behind-nginx.md";
const PREFIX = "/media-files";
const bytes = png(2, 3, 100_000);
const size = bytes.length;

const configurations = [
  { name: PAGE, configure: ofPage },
  {
    name: "deploy/container",
    configure: ({ url, filesDir }: FilesService) => shippedNginx({ agents: [url], workflows: [url], filesDir }),
  },
];

const suite = describe.skipIf(!hasNginx()).each(configurations);
suite("media sent by the nginx of $name (skipped where there is no nginx with openssl)", ({ configure }) => {
  const clock = createManualClock();
  let service: FilesService;
  let nginx: Nginx;
  let pool: Pool;
  let mediaId: string;
  beforeAll(async () => {
    service = await startFilesService({ clock, accelPrefix: PREFIX });
    nginx = await startNginx(await configure(service));
    const connect = { ca: nginx.certificate, servername: "agents.example" };
    pool = new Pool(`https://127.0.0.1:${nginx.port}`, { connect });
    const uploaded = await service.upload("owner", "/api/media/upload", { bytes, name: "tea.png", type: "image/png" });
    mediaId = uploaded.body.mediaId;
  });
  afterAll(async () => {
    await pool?.destroy();
    await nginx?.[Symbol.asyncDispose]();
    await service?.close();
  });

  /** Through nginx. Paths are sent as they are. */
  const ask = async (path: string, headers: Record<string, string> = {}, method: "GET" | "HEAD" = "GET") => {
    const {
      statusCode: status,
      headers: got,
      body,
    } = await pool.request({
      ...{ path, method },
      headers: { ...headers, host: "agents.example" },
    });
    return { status, headers: got as Record<string, string>, bytes: Buffer.from(await body.arrayBuffer()) };
  };
  const told = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await ask(path, headers);
    return [answer.status, JSON.parse(answer.bytes.toString()).error];
  };
  const link = () => service.link("owner", mediaId);
  const direct = async (headers: Record<string, string> = {}) => {
    const answer = await fetch(service.url + (await link()), { headers });
    return [answer.status, answer.headers.get("x-accel-redirect"), (await answer.bytes()).length];
  };

  it("the service names the file, and sends no bytes", async () => {
    expect(await direct()).toEqual([200, `${PREFIX}/media/${mediaId}`, 0]);
    expect(await direct({ range: "bytes=5-9" })).toEqual([200, `${PREFIX}/media/${mediaId}`, 0]);
  });

  it("GET has the bytes, with the headers that HEAD has from the service", async () => {
    const url = await link();
    const origin = { origin: ALLOWED_ORIGIN };
    const [whole, head] = [await ask(url, origin), await ask(url, origin, "HEAD")];
    expect([whole.status, head.status, head.bytes.length]).toEqual([200, 200, 0]);
    expect(whole.bytes.equals(bytes)).toBe(true);
    const { date: _date, connection: _connection, "x-portico-request-id": _id, "x-request-id": _other, ...sent } = whole.headers;
    expect(head.headers).toMatchObject(sent);
    expect(Object.keys(head.headers).toSorted()).toEqual(Object.keys(whole.headers).toSorted());
    expect(sent).toMatchObject({ "content-length": `${size}`, "accept-ranges": "bytes", "content-type": "image/png" });
    expect(sent["cache-control"]).toMatch(/^private, max-age=\d+$/);
    expect(sent["access-control-allow-origin"]).toBe(ALLOWED_ORIGIN);
    expect(sent["x-accel-redirect"]).toBeUndefined();
  });

  it.each([
    ["bytes=0-9", 0, 9],
    ["bytes=10-", 10, size - 1],
    ["bytes=0-", 0, size - 1],
    ["bytes=-10", size - 10, size - 1],
    [`bytes=5-${size + 100}`, 5, size - 1],
    [`bytes=-${size + 100}`, 0, size - 1],
    ["BYTES=3-4", 3, 4],
    // nginx would refuse these.
    [`bytes=7-${"9".repeat(30)}`, 7, size - 1],
    ["bytes=\t3-4", 3, 4],
  ])("%j is 206 with these bytes, and with the headers of the service", async (range, start, end) => {
    const answer = await ask(await link(), { range });
    expect([answer.status, answer.headers["content-range"]]).toEqual([206, `bytes ${start}-${end}/${size}`]);
    expect(answer.bytes.equals(bytes.subarray(start, end + 1))).toBe(true);
    expect(answer.headers).toMatchObject({ "accept-ranges": "bytes", "x-content-type-options": "nosniff", vary: "origin" });
  });

  it.each(["bytes=0-1,3-4", `bytes=${size}-`, "bytes=5-2", "bytes=-0", "bytes=-", "items=0-1"])(
    "%s is 416 in the words of the service",
    async (range) => {
      const answer = await ask(await link(), { range });
      expect([answer.status, answer.headers["content-range"], JSON.parse(answer.bytes.toString())]).toEqual([
        416,
        `bytes */${size}`,
        { error: "range_not_satisfiable" },
      ]);
    },
  );

  it("conditions have the outcome that they have without nginx", async () => {
    const url = await link();
    const { headers } = await ask(url);
    const [etag, modified] = [headers["etag"]!, headers["last-modified"]!];
    const [before, after] = ["Thu, 01 Jan 1970 00:00:01 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"];
    const range = "bytes=0-1";
    const cases: [Record<string, string>, number][] = [
      [{ "if-none-match": etag }, 304],
      [{ "if-none-match": `"x", W/${etag}` }, 304],
      [{ "if-none-match": '"x"' }, 200],
      [{ "if-none-match": '"x"', range }, 206],
      [{ "if-modified-since": modified }, 304],
      [{ "if-modified-since": before }, 200],
      [{ "if-match": etag }, 200],
      [{ "if-match": '"x"' }, 412],
      [{ "if-unmodified-since": after }, 200],
      [{ "if-unmodified-since": before }, 412],
      [{ "if-range": etag, range }, 206],
      [{ "if-range": modified, range }, 206],
      [{ "if-range": '"x"', range }, 200],
      [{ "if-range": before, range }, 200],
      [{ "if-range": '"x"', range: "bytes=0-1,3-4" }, 200],
      [{ "if-range": etag, range: "bytes=0-1,3-4" }, 416],
    ];
    for (const [given, status] of cases) {
      const answer = await ask(url, given);
      expect([given, answer.status]).toEqual([given, status]);
      if (status === 200) expect(answer.bytes.equals(bytes)).toBe(true);
      if (status === 206) expect(answer.bytes.equals(bytes.subarray(0, 2))).toBe(true);
    }
  });

  it("changed links, links of another key and expired links get no byte", async () => {
    const url = await link();
    expect(await told(url.replace(/.$/, (last) => (last === "A" ? "B" : "A")))).toEqual([401, "invalid_media_signature"]);
    expect(await told(url.replace(/expires=\d+/, "expires=9999999999"))).toEqual([401, "invalid_media_signature"]);
    await using other = await startFilesService({ clock, signingKey: "another key" });
    const { body } = await other.upload("owner", "/api/media/upload", { bytes, type: "image/png" });
    const foreign = await other.link("owner", body.mediaId);
    expect(await told(foreign.replace(body.mediaId, mediaId))).toEqual([401, "invalid_media_signature"]);
    await clock.jump(300_000);
    expect(await told(url)).toEqual([401, "media_signature_expired"]);
    expect(await told(url, { range: "bytes=0-1" })).toEqual([401, "media_signature_expired"]);
  });

  it.each([
    (id: string) => `${PREFIX}/media/${id}`,
    (id: string) => `/media/..${PREFIX}/media/${id}`,
    (id: string) => `//media-files/media/${id}`,
    (id: string) => `/%6dedia-files/media/${id}`,
    () => `${PREFIX}/.format`,
    () => `${PREFIX}/../records.sqlite`,
    () => `${PREFIX}/%2e%2e/records.sqlite`,
    () => `${PREFIX}..%2frecords.sqlite`,
    (id: string) => `/media/..%2fmedia-files%2fmedia%2f${id}`,
  ])("no path from outside reaches the files: case %#", async (path) => {
    const answer = await ask(path(mediaId));
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(answer.status).toBeLessThan(500);
    expect(answer.bytes.includes("PNG")).toBe(false);
  });

  it("a client's own X-Accel headers have no effect", async () => {
    const redirect = { "x-accel-redirect": `${PREFIX}/media/${mediaId}` };
    expect(await told("/media/none", redirect)).toEqual([401, "invalid_media_signature"]);
    const limits = { "x-accel-redirect": `${PREFIX}/.format`, "x-accel-limit-rate": "1", "x-accel-charset": "x" };
    expect((await ask(await link(), limits)).bytes.equals(bytes)).toBe(true);
  });

  it("files that are missing or damaged get the errors of the service", async () => {
    const { body } = await service.upload("owner", "/api/media/upload", { bytes, type: "image/png" });
    const url = await service.link("owner", body.mediaId);
    const file = join(service.filesDir, "media", body.mediaId);
    writeFileSync(file, "shorter");
    expect(await told(url)).toEqual([500, "media_internal_error"]);
    rmSync(file);
    expect(await told(url, { range: "bytes=0-1" })).toEqual([404, "media_not_found"]);
  });

  it("blobs that are not files are sent by the service", async () => {
    await using other = await startFilesService({ clock, accelPrefix: PREFIX, blobs: memoryBlobs() });
    const { body } = await other.upload("owner", "/api/media/upload", { bytes, type: "image/png" });
    const answer = await fetch(other.url + (await other.link("owner", body.mediaId)));
    expect([answer.headers.get("x-accel-redirect"), (await answer.bytes()).length]).toEqual([null, size]);
  });
});

/** The page's configuration, with its location for media in the server of the agent service. */
async function ofPage(service: FilesService): Promise<string> {
  const { blocks } = await readPage(PAGE);
  const [servers = "", media = ""] = blocks.filter(({ language }) => language === "nginx").map(({ text }) => text);
  return servers
    .replaceAll("http://127.0.0.1:49154", service.url)
    .replace(/^ {2}location \/ \{/m, `${media.replaceAll("/var/lib/portico/files", service.filesDir)}\n  location / {`);
}
