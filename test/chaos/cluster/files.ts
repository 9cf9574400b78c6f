import { createCipheriv, createHash, randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { png } from "../../harness/files-app.ts";
import { callOnce, callUntilAnswered, jsonBody } from "./call.ts";
import { type Load, OpenItems, repeat, Report } from "./load.ts";
import { type Scene, UPLOADERS } from "./stage.ts";

/** An acknowledged upload. Its number determines its bytes. */
interface Uploaded {
  readonly number: number;
  readonly isMedia: boolean;
  readonly id: string;
  readonly token: string;
}

const READERS = 2;
/** The limit per user is 256. */
const ATTACHMENTS_PER_USER = 240;
const MOST_BYTES = 200_000;

/** Users upload attachments and media, and read media over signed links, whole and in ranges. */
export function fileLoad({ cluster }: Scene): Load {
  const url = cluster.url("agent");
  const uploaded: Uploaded[] = [];
  const attachments = new Map<string, number>();
  const wrong: string[] = [];
  const open = new OpenItems();
  const tally: Record<string, number> = {};
  const count = (what: string) => void (tally[what] = (tally[what] ?? 0) + 1);
  let next = 0;

  async function upload(token: string): Promise<void> {
    const number = ++next;
    const isMedia = Math.random() < 0.5 || (attachments.get(token) ?? 0) >= ATTACHMENTS_PER_USER;
    if (!isMedia) attachments.set(token, (attachments.get(token) ?? 0) + 1);
    const bytes = contentOf(number, isMedia);
    const form = new FormData();
    form.append("file", new Blob([bytes], { type: isMedia ? "image/png" : "application/octet-stream" }), "file");
    const path = isMedia ? "/api/media/upload" : "/api/attachments";
    const request = { method: "POST", headers: { "x-agent-service-token": token }, body: form };
    const answer = await open.during(`upload ${number}`, () => callOnce(url + path, request));
    if (!answer || answer.status >= 500) return count("unanswered");
    if (answer.status >= 300) return void wrong.push(`upload ${number} has ${answer.status}: ${answer.bytes.toString()}`);
    uploaded.push({ number, isMedia, id: answer.body.mediaId ?? answer.body.attachmentId, token });
  }

  async function read(): Promise<void> {
    const file = uploaded[Math.floor(Math.random() * uploaded.length)];
    if (!file) return;
    const whole = contentOf(file.number, file.isMedia);
    const headers = { "x-agent-service-token": file.token };
    const first = randomInt(whole.length);
    const last = Math.min(whole.length - 1, first + randomInt(50_000));
    const isRange = file.isMedia && Math.random() < 0.6;
    const answer = await open.during(`read of ${file.id}`, async () => {
      const path = file.isMedia ? await linkOf(url, file) : `/api/attachments/${file.id}`;
      return callOnce(url + path, { headers: file.isMedia ? (isRange ? { range: `bytes=${first}-${last}` } : {}) : headers });
    });
    if (!answer || answer.status >= 500) return count("reads without answer");
    count("reads");
    const expected = isRange ? whole.subarray(first, last + 1) : whole;
    if (answer.status !== (isRange ? 206 : 200) || digestOf(answer.bytes) !== digestOf(expected))
      wrong.push(`a read of ${file.id} has ${answer.status} with ${answer.bytes.length} of ${expected.length} bytes`);
    if (isRange && answer.headers.get("content-range") !== `bytes ${first}-${last}/${whole.length}`)
      wrong.push(`a read of ${file.id} has the range ${answer.headers.get("content-range")}`);
  }

  return {
    name: "files",
    open: () => open.list(),
    async run(signal) {
      await Promise.all([
        repeat(UPLOADERS.length, signal, async (at) => {
          await upload(UPLOADERS[at]!.token);
          await sleep(200 + Math.random() * 800);
        }),
        repeat(READERS, signal, async () => {
          await read();
          await sleep(100 + Math.random() * 200);
        }),
      ]);
    },
    async verify() {
      const report = new Report();
      report.wrong.push(...wrong);
      Object.assign(report.counts, tally);
      for (const file of uploaded) {
        const path = file.isMedia ? await linkOf(url, file) : `/api/attachments/${file.id}`;
        const headers = { "x-agent-service-token": file.token };
        const { status, bytes } = await callUntilAnswered(url + path, { headers });
        const isThere = status === 200 && digestOf(bytes) === digestOf(contentOf(file.number, file.isMedia));
        report.expect(isThere, `${file.id} was acknowledged, and has ${status} with ${bytes.length} bytes`);
        report.count(file.isMedia ? "media" : "attachments");
      }
      return report;
    },
  };
}

async function linkOf(url: string, { id, token }: Uploaded): Promise<string> {
  const asked = jsonBody({ "x-agent-service-token": token }, "POST", { mediaIds: [id] });
  const { status, body } = await callUntilAnswered(`${url}/api/media/access-urls`, asked);
  if (status !== 200 || body.items.length !== 1) throw new Error(`${id} was acknowledged, and has no link: ${status}`);
  return body.items[0].url;
}

/** Bytes that belong to a number. */
function contentOf(number: number, isMedia: boolean): Buffer<ArrayBuffer> {
  const seed = createHash("sha256").update(`content ${number}`).digest();
  const cipher = createCipheriv("aes-256-ctr", seed, Buffer.alloc(16));
  const bytes = cipher.update(Buffer.alloc(1 + (seed.readUInt32BE() % MOST_BYTES)));
  return Buffer.concat(isMedia ? pictureWith(bytes) : [bytes]);
}

/** The parts of a PNG whose data are these bytes. It need not be decodable. */
function pictureWith(bytes: Buffer): Buffer[] {
  const frame = png(1, 1);
  const chunk = Buffer.alloc(8);
  chunk.writeUInt32BE(bytes.length);
  chunk.write("IDAT", 4, "latin1");
  return [frame.subarray(0, -12), chunk, bytes, Buffer.alloc(4), frame.subarray(-12)];
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
