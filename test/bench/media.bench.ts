/**
 * Measures what moving files costs: `npm run bench:media`, about two minutes. The service and the bare servers are separate processes that
 * take turns on the same disk. The client is this process. Bare is node:http with a file stream, without multipart, digests, links and
 * checks. With X-Accel, nginx sends the files that the service has checked; its processor time is that of the service alone. `-- reads`
 * leaves out the uploads.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { Pool } from "undici";
import { TOKENS } from "../harness/agent-app.ts";
import { png } from "../harness/files-app.ts";
import { cpuOf, startWorker } from "./proxy/child.ts";
import { ACCEL_PREFIX, acceleratedFiles, signedFiles, startNginx } from "./proxy/nginx.ts";
import type { ServerJob, ServerResult } from "./media/server.ts";

const MIB = 1024 * 1024;
const UPLOAD_BYTES = 1024 * MIB;
const UPLOADS = 3;
const READS: readonly ReadKind[] = [
  { what: "64 KiB", size: 64 * 1024, reads: 20_000 },
  { what: "64 MiB", size: 64 * MIB, reads: 160 },
  { what: "64 KiB ranges of 64 MiB", size: 64 * MIB, reads: 20_000, range: 64 * 1024 },
];
const ROUNDS = 5;
const CONCURRENCY = 32;
const BOUNDARY = "----bench-of-portico";
const headers = { "x-agent-service-token": TOKENS.owner };

interface ReadKind {
  readonly what: string;
  /** Bytes of the file. */
  readonly size: number;
  readonly reads: number;
  /** Bytes of a range; undefined if the whole file is read. */
  readonly range?: number | undefined;
}

interface Server {
  readonly url: string;
  /** The server's processes. nginx has several. */
  readonly pid?: number | undefined;
}

interface Round {
  /** Reads per second. */
  readonly rate: number;
  /** Microseconds of the server's processor time per read. */
  readonly cpu?: number | undefined;
}

console.log(`node ${process.version}, ${availableParallelism()} cores (${cpus()[0]?.model ?? "unknown"})\n`);
console.log("upload of 1 GiB | MiB/s | peak memory MiB | bare MiB/s | rate ÷ bare");
for (let time = 0; time < (process.argv.includes("reads") ? 0 : UPLOADS); time++) {
  const own = await withServer("server", ({ url }, peak) => measureUpload(url, true, peak));
  const bare = await withServer("bare", ({ url }, peak) => measureUpload(url, false, peak));
  const cells = [own.rate.toFixed(0), own.peak.toFixed(0), bare.rate.toFixed(0), (own.rate / bare.rate).toFixed(2)];
  console.log(`${time + 1} of ${UPLOADS} | ${cells.join(" | ")}`);
}

const accelerated: string[] = [];
console.log(
  `\nsigned reads at concurrency ${CONCURRENCY} | reads/s | MiB/s | bare reads/s | rate ÷ bare | nginx reads/s | rate ÷ nginx | CPU µs | bare CPU µs | CPU ÷ bare`,
);
for (const kind of READS) {
  const { own, accel } = await compareReads(kind);
  console.log(`${kind.what} | ${own.join(" | ")}`);
  accelerated.push(`${kind.what} | ${accel.join(" | ")}`);
}
console.log(
  `\nwith X-Accel | reads/s | MiB/s | rate ÷ nginx | rate ÷ service alone | service's CPU µs | CPU ÷ service alone\n${accelerated.join("\n")}`,
);

/**
 * The servers take turns in short rounds, so that other load on the machine affects all of them. Each number is the median of the rounds.
 */
async function compareReads({ size, reads, range }: ReadKind): Promise<{ own: string[]; accel: string[] }> {
  const rounds: Record<"own" | "bare" | "nginx" | "accel", Round[]> = { own: [], bare: [], nginx: [], accel: [] };
  const turn = { size, reads: Math.ceil(reads / ROUNDS), range };
  await withServer("server", async (own) => {
    const link = await storeMedia(own.url, size);
    await withServer("bare", async (bare) => {
      const path = await storeBare(bare.url, size);
      await withNginx(size, async (nginx, accel) => {
        // The first round warms up.
        for (let round = 0; round <= ROUNDS; round++) {
          const turns = {
            own: await measureReads(own, await link(), turn),
            bare: await measureReads(bare, path, turn),
            nginx: nginx && (await measureReads(nginx, nginx.path, turn)),
            accel: accel && (await measureReads(accel, await accel.link(), turn)),
          };
          if (round === 0) continue;
          rounds.own.push(turns.own);
          rounds.bare.push(turns.bare);
          if (turns.nginx) rounds.nginx.push(turns.nginx);
          if (turns.accel) rounds.accel.push(turns.accel);
        }
      });
    });
  });
  const { own, bare, nginx, accel } = rounds;
  const beside = (ones: readonly Round[], others: readonly Round[], key: "rate" | "cpu") =>
    others.length === 0
      ? ""
      : median(ones.map((each, at) => (each[key] ?? Number.NaN) / (others[at]![key] ?? Number.NaN))).toFixed(2);
  const rateOf = (ones: readonly Round[]) => median(ones.map((each) => each.rate));
  const cpuPer = (ones: readonly Round[]) => median(ones.map((each) => each.cpu ?? Number.NaN)).toFixed(0);
  const speedOf = (ones: readonly Round[]) => [rateOf(ones).toFixed(0), ((rateOf(ones) * (range ?? size)) / MIB).toFixed(0)];
  const nginxCells = nginx.length > 0 ? [rateOf(nginx).toFixed(0), beside(own, nginx, "rate")] : ["not installed", ""];
  return {
    own: [
      ...[...speedOf(own), rateOf(bare).toFixed(0), beside(own, bare, "rate"), ...nginxCells],
      ...[cpuPer(own), cpuPer(bare), beside(own, bare, "cpu")],
    ],
    accel:
      accel.length > 0
        ? [...speedOf(accel), beside(accel, nginx, "rate"), beside(accel, own, "rate"), cpuPer(accel), beside(accel, own, "cpu")]
        : ["nginx is not installed"],
  };
}

async function withServer<T>(
  kind: "server" | "bare",
  use: (server: Server & { readonly dataDir: string }, peak: () => Promise<number>) => Promise<T>,
  accelPrefix?: string,
): Promise<T> {
  const dataDir = mkdtempSync(join(tmpdir(), "portico-bench-media-"));
  const server = startWorker<ServerJob, ServerResult>(new URL(`media/${kind}.ts`, import.meta.url));
  try {
    const { url = "" } = await server.run({ do: "open", dataDir, ...(accelPrefix !== undefined && { accelPrefix }) });
    return await use({ url, pid: server.pid, dataDir }, async () => (await server.run({ do: "peak" })).peak ?? Number.NaN);
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true });
  }
}

/**
 * nginx with a file of this size and a signed link to it, and nginx before its own service, with a link to media of this size. Undefined if
 * nginx is not installed.
 */
async function withNginx<T>(
  size: number,
  use: (nginx?: Server & { path: string }, accel?: Server & { link: () => Promise<string> }) => Promise<T>,
): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "portico-bench-nginx-"));
  const [uri, secret, expires] = ["/media/a.png", "a-secret", Math.floor(Date.now() / 1000) + 3600];
  mkdirSync(join(dir, "media"));
  mkdirSync(join(dir, "accel"));
  writeFileSync(join(dir, uri), png(1, 1, size - png().length));
  const nginx = await startNginx(dir, signedFiles(dir, secret));
  try {
    if (!nginx) return await use();
    const signature = createHash("md5").update(`${expires}${uri} ${secret}`).digest("base64url");
    const signed = { url: nginx.origin, path: `${uri}?expires=${expires}&signature=${signature}` };
    return await withServer(
      "server",
      async ({ url, pid, dataDir }) => {
        const link = await storeMedia(url, size);
        const front = await startNginx(join(dir, "accel"), acceleratedFiles(join(dataDir, "files"), url));
        try {
          return await use(signed, front && { url: front.origin, pid, link });
        } finally {
          await front?.stop();
        }
      },
      ACCEL_PREFIX,
    );
  } finally {
    await nginx?.stop();
    rmSync(dir, { recursive: true });
  }
}

/** The body of an upload with this many bytes, with or without a multipart envelope. */
async function* bodyOf(isMultipart: boolean): AsyncIterable<Buffer> {
  const chunk = randomBytes(64 * 1024);
  if (isMultipart) {
    yield Buffer.from(
      `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="film.mp4"\r\ncontent-type: video/mp4\r\n\r\n`,
    );
    // The first box of an MP4. The rest is not read.
    const head = Buffer.alloc(chunk.length);
    head.write("\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41", 0, "latin1");
    yield head;
  } else yield chunk;
  for (let sent = chunk.length; sent < UPLOAD_BYTES; sent += chunk.length) yield chunk;
  if (isMultipart) yield Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
}

async function measureUpload(url: string, isMultipart: boolean, peak: () => Promise<number>) {
  const begun = performance.now();
  const answer = await fetch(`${url}/api/media/upload`, {
    method: "POST",
    headers: { ...headers, ...(isMultipart && { "content-type": `multipart/form-data; boundary=${BOUNDARY}` }) },
    body: Readable.toWeb(Readable.from(bodyOf(isMultipart), { objectMode: false })) as ReadableStream<Uint8Array>,
    duplex: "half",
  } as RequestInit);
  if (!answer.ok) throw new Error(`An upload was answered with ${answer.status}: ${await answer.text()}`);
  await answer.body?.cancel();
  const rate = UPLOAD_BYTES / MIB / ((performance.now() - begun) / 1000);
  return { rate, peak: await peak() };
}

/** Returns a function that makes links to media of this size: a link expires after five minutes. */
async function storeMedia(url: string, size: number): Promise<() => Promise<string>> {
  const form = new FormData();
  form.append("file", new Blob([png(1, 1, size - png().length) as Buffer<ArrayBuffer>], { type: "image/png" }), "a.png");
  const uploaded = await fetch(`${url}/api/media/upload`, { method: "POST", headers, body: form });
  const { mediaId } = (await uploaded.json()) as { mediaId: string };
  return async () => {
    const asked = await fetch(`${url}/api/media/access-urls`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ mediaIds: [mediaId] }),
    });
    return ((await asked.json()) as { items: readonly { url: string }[] }).items[0]!.url;
  };
}

/** The path of a file of this size in a bare server. */
async function storeBare(url: string, size: number): Promise<string> {
  const answer = await fetch(url, { method: "POST", body: png(1, 1, size - png().length) as Buffer<ArrayBuffer> });
  const { path } = (await answer.json()) as { path: string };
  return `/?path=${encodeURIComponent(path)}`;
}

async function measureReads({ url, pid }: Server, path: string, { size, reads, range }: Omit<ReadKind, "what">): Promise<Round> {
  const pool = new Pool(url, { connections: CONCURRENCY });
  const read = async (at: number) => {
    const start = range === undefined ? 0 : (at * range) % (size - range);
    const asked = range === undefined ? {} : { range: `bytes=${start}-${start + range - 1}` };
    const { statusCode, body } = await pool.request({ path, method: "GET", headers: asked });
    if (statusCode !== 200 && statusCode !== 206) throw new Error(`A read was answered with ${statusCode}`);
    let length = 0;
    for await (const chunk of body) length += (chunk as Buffer).length;
    if (length !== (range ?? size)) throw new Error(`A read had ${length} bytes`);
  };
  await read(0);
  let next = 0;
  const used = () => (pid === undefined ? undefined : cpuOf(pid));
  const usedBefore = used();
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      while (next < reads) await read(next++);
    }),
  );
  const rate = (reads * 1000) / (performance.now() - begun);
  const usedAfter = used();
  await pool.close();
  return { rate, cpu: usedBefore === undefined || usedAfter === undefined ? undefined : (usedAfter - usedBefore) / reads };
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)]!;
}
