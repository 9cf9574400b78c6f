import { join } from "node:path";
import { fileBlobs } from "@portico/adapters/blobs/files";
import { hmacSigning } from "@portico/adapters/signing/hmac";
import { type Adapter, Secret } from "@portico/core";
import { attachmentsMedia } from "@portico/plugins/attachments-media";
import { type AgentService, type AgentServiceOptions, type Answer, type Holder, startAgentService, TOKENS } from "./agent-app.ts";
import { temporaryFolder } from "./portico-process.ts";

export interface FilesServiceOptions extends Omit<AgentServiceOptions, "plugins"> {
  /** The key that signs links; undefined: no key. Default: a new key. */
  readonly signingKey?: string | undefined;
  /** Of `attachmentsMedia`. */
  readonly accelPrefix?: string;
  /** In place of files. */
  readonly blobs?: Adapter;
  /** How long files are kept. */
  readonly keeping?: Pick<Parameters<typeof attachmentsMedia>[0], "keepAttachments" | "keepMedia">;
}

/** An agent service that takes attachments and media. */
export interface FilesService extends AgentService {
  /** Where the blobs stand. */
  readonly filesDir: string;
  /** Upload one file. */
  upload(holder: Holder | undefined, path: string, file: UploadedFile): Promise<Answer>;
  /** A link to this media. */
  link(holder: Holder, mediaId: string): Promise<string>;
}

export interface UploadedFile {
  readonly bytes: Uint8Array | string;
  readonly field?: string;
  readonly name?: string;
  readonly type?: string;
}

export async function startFilesService(options: FilesServiceOptions = {}): Promise<FilesService> {
  const { signingKey = "a key of this test", accelPrefix, blobs, keeping = {}, ...rest } = options;
  const folder = options.dataDir === undefined ? temporaryFolder() : undefined;
  const dataDir = options.dataDir ?? folder!.path;
  const filesDir = join(dataDir, "files");
  const key = "signingKey" in options && options.signingKey === undefined ? undefined : new Secret(signingKey);
  const service = await startAgentService({
    ...rest,
    dataDir,
    adapters: [blobs ?? fileBlobs({ dir: filesDir }), hmacSigning({ key }), ...(options.adapters ?? [])],
    plugins: [attachmentsMedia({ media: { accelPrefix }, ...keeping })],
  });
  const close = async () => {
    await service.close();
    folder?.remove();
  };
  return {
    ...service,
    close,
    [Symbol.asyncDispose]: close,
    filesDir,
    async upload(holder, path, { bytes, field = "file", name = "file.bin", type = "application/octet-stream" }) {
      const form = new FormData();
      form.append(field, new Blob([bytes as Uint8Array<ArrayBuffer>], { type }), name);
      const headers: Record<string, string> = holder ? { "x-agent-service-token": TOKENS[holder] } : {};
      const answer = await fetch(service.url + path, { method: "POST", headers, body: form });
      const text = await answer.text();
      const body = text === "" ? undefined : JSON.parse(text);
      return { status: answer.status, headers: Object.fromEntries(answer.headers), body };
    },
    async link(holder, mediaId) {
      const { status, body } = await service.call(holder, "POST", "/api/media/access-urls", { mediaIds: [mediaId] });
      if (status !== 200 || body.items.length === 0) throw new Error(`There is no link: ${status} ${JSON.stringify(body)}`);
      return body.items[0].url;
    },
  };
}

/** A PNG of this size. It need not be decodable. */
export function png(width = 2, height = 3, more = 0): Buffer {
  const header = Buffer.alloc(25);
  header.writeUInt32BE(13, 0);
  header.write("IHDR", 4, "latin1");
  header.writeUInt32BE(width, 8);
  header.writeUInt32BE(height, 12);
  header.writeUInt8(8, 16);
  header.writeUInt8(6, 17);
  const end = Buffer.from([0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82]);
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), header, Buffer.alloc(more, 7), end]);
}
