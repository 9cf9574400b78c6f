import { createHash, randomBytes } from "node:crypto";

export interface S3Object {
  readonly chunks: readonly Buffer[];
  readonly size: number;
  readonly etag: string;
  readonly modifiedAt: number;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface S3Upload {
  readonly key: string;
  readonly initiatedAt: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly parts: Map<number, Omit<S3Object, "modifiedAt" | "metadata">>;
}

/** Requests that S3 refuses. */
export class S3Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string) {
    super(`${status} ${code}`);
    this.status = status;
    this.code = code;
  }
}

const SMALLEST_PART = 5 * 1024 * 1024;

/** Objects and uploads of one bucket, under the rules of S3. */
export class S3Bucket {
  readonly objects = new Map<string, S3Object>();
  readonly uploads = new Map<string, S3Upload>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  put(key: string, chunks: readonly Buffer[], metadata: Readonly<Record<string, string>>, ifNoneMatch?: string): S3Object {
    this.#checkAbsence(key, ifNoneMatch);
    const object = { ...toBytes(chunks), modifiedAt: this.#now(), metadata };
    this.objects.set(key, object);
    return object;
  }

  /** As S3 since 2025: a missing object cannot be deleted with a condition. */
  delete(key: string, ifMatch?: string): void {
    const object = this.objects.get(key);
    if (ifMatch !== undefined && object === undefined) throw new S3Refusal(404, "NoSuchKey");
    if (ifMatch !== undefined && ifMatch !== "*" && ifMatch !== object?.etag) throw new S3Refusal(412, "PreconditionFailed");
    this.objects.delete(key);
  }

  createUpload(key: string, metadata: Readonly<Record<string, string>>): string {
    const id = randomBytes(16).toString("base64");
    this.uploads.set(id, { key, initiatedAt: this.#now(), metadata, parts: new Map() });
    return id;
  }

  putPart(key: string, id: string, number: number, chunks: readonly Buffer[]): string {
    if (!(number >= 1 && number <= 10_000)) throw new S3Refusal(400, "InvalidArgument");
    const part = toBytes(chunks);
    this.#uploadOf(key, id).parts.set(number, part);
    return part.etag;
  }

  complete(key: string, id: string, named: readonly (readonly [number, string])[], ifNoneMatch?: string): S3Object {
    const { parts, metadata } = this.#uploadOf(key, id);
    if (named.length === 0) throw new S3Refusal(400, "MalformedXML");
    const chosen = named.map(([number, etag], at) => {
      const part = parts.get(number);
      if (part?.etag !== etag) throw new S3Refusal(400, "InvalidPart");
      if (at > 0 && named[at - 1]![0] >= number) throw new S3Refusal(400, "InvalidPartOrder");
      return part;
    });
    if (chosen.slice(0, -1).some(({ size }) => size < SMALLEST_PART)) throw new S3Refusal(400, "EntityTooSmall");
    // Not a rule of S3 itself, but of other stores.
    if (new Set(chosen.slice(0, -1).map(({ size }) => size)).size > 1) throw new S3Refusal(400, "InvalidPart");
    this.#checkAbsence(key, ifNoneMatch);
    const object = {
      chunks: chosen.flatMap(({ chunks }) => chunks),
      size: chosen.reduce((sum, { size }) => sum + size, 0),
      etag: `"${createHash("md5")
        .update(chosen.map(({ etag }) => etag).join(""))
        .digest("hex")}-${chosen.length}"`,
      modifiedAt: this.#now(),
      metadata,
    };
    this.objects.set(key, object);
    this.uploads.delete(id);
    return object;
  }

  abortUpload(key: string, id: string): void {
    this.#uploadOf(key, id);
    this.uploads.delete(id);
  }

  #uploadOf(key: string, id: string): S3Upload {
    const upload = this.uploads.get(id);
    if (upload?.key !== key) throw new S3Refusal(404, "NoSuchUpload");
    return upload;
  }

  #checkAbsence(key: string, ifNoneMatch: string | undefined): void {
    if (ifNoneMatch !== undefined && ifNoneMatch !== "*") throw new S3Refusal(501, "NotImplemented");
    if (ifNoneMatch === "*" && this.objects.has(key)) throw new S3Refusal(412, "PreconditionFailed");
  }
}

function toBytes(chunks: readonly Buffer[]): Omit<S3Object, "modifiedAt" | "metadata"> {
  const hash = createHash("md5");
  for (const chunk of chunks) hash.update(chunk);
  return { chunks, size: chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0), etag: `"${hash.digest("hex")}"` };
}
