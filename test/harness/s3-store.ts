import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { S3BlobsOptions } from "@portico/cluster/blobs/s3";
import { Secret } from "@portico/core";
import { parseXml, XmlElement } from "@rgrove/parse-xml";
import { S3Bucket, type S3Object, S3Refusal } from "./s3-bucket.ts";
import { refusalOf, type SigningKey } from "./s3-signature.ts";

/**
 * A strict replacement for S3 in this process. It checks signatures and the hashes of bodies, enforces the sizes of parts and the
 * preconditions of requests, and refuses unknown requests. Tests set the faults that it should have.
 */
export interface S3Store {
  readonly endpoint: string;
  readonly key: SigningKey;
  /** The received requests, in order. */
  readonly requests: S3Request[];
  /** The treatment of a request. It is awaited before any part of the request is performed. */
  mishap: (request: S3Request) => S3Mishap | undefined | Promise<S3Mishap | undefined>;
  /** Make a bucket, and the options for blobs in it. */
  makeBucket(): { readonly bucket: S3Bucket; readonly options: S3BlobsOptions };
  close(): Promise<void>;
}

export interface S3Request {
  readonly operation: string;
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  /** Whether the line has taken all of the answer, or was cut. */
  isOver: boolean;
}

/**
 * `reset`: the connection is cut during the request, which is not performed. `lose`: the request is performed, and the connection is cut
 * before the answer. `cut`: the connection is cut during the answer's body. `whole`: the range is ignored. `short`: the answer is one byte
 * shorter than its range. Otherwise an answer, and the request is not performed.
 */
export type S3Mishap = "reset" | "lose" | "cut" | "whole" | "short" | { readonly status: number; readonly code: string };

export interface S3StoreOptions {
  /** Default: 1,000, as S3 has it. */
  readonly pageSize?: number;
  readonly now?: () => number;
  readonly sessionToken?: string;
}

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly chunks?: readonly Buffer[];
}

const OBJECT_HEADERS = ["if-none-match", "content-type", "x-amz-meta-put-id"];

/** Operations by method and distinguishing query parameter, with the other parameters that they accept. */
const OPERATIONS: readonly (readonly [name: string, method: string, told: string[], may: string[], headers: string[]])[] = [
  ["ListObjectsV2", "GET", ["list-type"], ["prefix", "max-keys", "continuation-token", "encoding-type"], []],
  ["ListMultipartUploads", "GET", ["uploads"], ["prefix", "key-marker", "upload-id-marker", "encoding-type"], []],
  ["UploadPart", "PUT", ["partNumber", "uploadId"], [], []],
  ["PutObject", "PUT", [], [], OBJECT_HEADERS],
  ["HeadObject", "HEAD", [], [], []],
  ["GetObject", "GET", [], [], ["range"]],
  ["AbortMultipartUpload", "DELETE", ["uploadId"], [], []],
  ["DeleteObject", "DELETE", [], [], ["if-match"]],
  ["CreateMultipartUpload", "POST", ["uploads"], [], OBJECT_HEADERS.slice(1)],
  ["CompleteMultipartUpload", "POST", ["uploadId"], [], ["if-none-match"]],
];
const ALWAYS = [
  "host",
  "connection",
  "content-length",
  "authorization",
  "x-amz-date",
  "x-amz-content-sha256",
  "x-amz-security-token",
];

export async function startS3Store({ pageSize = 1000, now = Date.now, sessionToken }: S3StoreOptions = {}): Promise<S3Store> {
  const buckets = new Map<string, S3Bucket>();
  const key = { accessKeyId: "AKIATEST", secretAccessKey: "hidden/word+of=store", sessionToken, region: "test-1" };
  const server = createServer((request, response) => {
    void answerRequest(request, response).catch(() => request.socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const store: S3Store = {
    endpoint,
    key,
    requests: [],
    mishap: () => undefined,
    makeBucket() {
      const name = `bucket-${buckets.size + 1}`;
      const bucket = new S3Bucket(now);
      buckets.set(name, bucket);
      const { accessKeyId, secretAccessKey, region } = key;
      const options: S3BlobsOptions = {
        ...{ endpoint, bucket: name, region, prefix: "blobs/" },
        ...{ accessKeyId: new Secret(accessKeyId), secretAccessKey: new Secret(secretAccessKey) },
        ...(sessionToken && { sessionToken: new Secret(sessionToken) }),
      };
      return { bucket, options };
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return store;

  async function answerRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams: query } = new URL(request.url!, endpoint);
    const [, bucketName = "", name = ""] = /^\/([^/]*)\/?(.*)$/.exec(pathname)!;
    const { method = "", headers } = request;
    const operation = OPERATIONS.find(([, its, told]) => its === method && told.every((word) => query.has(word)));
    const seen: S3Request = { operation: operation?.[0] ?? "", key: decodeURIComponent(name), query, headers, isOver: false };
    store.requests.push(seen);
    response.once("close", () => (seen.isOver = true));
    const mishap = await store.mishap(seen);
    if (mishap === "reset") {
      if (Number(headers["content-length"]) > 0) await once(request, "data");
      return void request.socket.destroy();
    }
    const body = await Array.fromAsync(request as AsyncIterable<Buffer>);
    let answer: Answer;
    try {
      if (typeof mishap === "object") throw new S3Refusal(mishap.status, mishap.code);
      if (operation === undefined) throw new S3Refusal(405, "MethodNotAllowed");
      checkRequest(operation, query, headers);
      const refusal = refusalOf({ method, path: pathname, query, headers, body }, key, now());
      if (refusal) throw new S3Refusal(refusal === "XAmzContentSHA256Mismatch" ? 400 : 403, refusal);
      const bucket = buckets.get(bucketName);
      if (bucket === undefined) throw new S3Refusal(404, "NoSuchBucket");
      if (mishap === "whole") delete headers.range;
      answer = carryOut(bucket, seen, body);
      if (mishap === "short") answer = shorten(answer);
    } catch (error) {
      if (!(error instanceof S3Refusal)) throw error;
      // Errors of Portico must not show a store's text beside the code.
      const said = `<Message>hidden-message</Message><AWSAccessKeyId>${key.accessKeyId}</AWSAccessKeyId>`;
      const range: Record<string, string> = error.status === 416 ? { "content-range": "bytes */0" } : {};
      answer = { ...toXml("Error", `<Code>${error.code}</Code>${said}`, error.status), headers: range };
    }
    if (mishap === "lose") return void request.socket.destroy();
    await sendAnswer(response, method, answer, mishap === "cut");
  }

  function carryOut(bucket: S3Bucket, { operation, key, query, headers }: S3Request, body: readonly Buffer[]): Answer {
    const uploadId = query.get("uploadId") ?? "";
    const metadata = { "x-amz-meta-put-id": `${headers["x-amz-meta-put-id"]}` };
    const ifNoneMatch = headers["if-none-match"];
    switch (operation) {
      case "PutObject":
        return { status: 200, headers: { etag: bucket.put(key, body, metadata, ifNoneMatch).etag } };
      case "HeadObject":
      case "GetObject":
        return readObject(bucket.objects.get(key), headers.range);
      case "DeleteObject":
        bucket.delete(key, headers["if-match"]);
        return { status: 204 };
      case "CreateMultipartUpload":
        return toXml("InitiateMultipartUploadResult", element("UploadId", bucket.createUpload(key, metadata)));
      case "UploadPart":
        return { status: 200, headers: { etag: bucket.putPart(key, uploadId, Number(query.get("partNumber")), body) } };
      case "CompleteMultipartUpload":
        // With blanks in front, as some stores keep the line open.
        return toXml("CompleteMultipartUploadResult", element("ETag", complete().etag), 200, "   \n");
      case "AbortMultipartUpload":
        bucket.abortUpload(key, uploadId);
        return { status: 204 };
      case "ListObjectsV2":
        return listObjects(bucket, query);
      default:
        return listUploads(bucket, query);
    }

    function complete(): S3Object {
      const { root } = parseXml(Buffer.concat(body).toString());
      if (root?.name !== "CompleteMultipartUpload") throw new S3Refusal(400, "MalformedXML");
      const named = elements(root).map((part) => {
        const [number, etag] = elements(part);
        if (part.name !== "Part" || number?.name !== "PartNumber" || etag?.name !== "ETag")
          throw new S3Refusal(400, "MalformedXML");
        return [Number(number.text), etag.text] as const;
      });
      return bucket.complete(key, uploadId, named, ifNoneMatch);
    }
  }

  function listObjects(bucket: S3Bucket, query: URLSearchParams): Answer {
    const most = Math.min(pageSize, Number(query.get("max-keys") ?? 1000));
    // With every sign in it that an address must encode.
    const token = query.get("continuation-token");
    const after = token === null ? "" : Buffer.from(token.replace(/\+\/=&$/, ""), "base64").toString();
    const found = [...bucket.objects].filter(([name]) => name > after && name.startsWith(query.get("prefix") ?? "")).toSorted();
    const page = found.slice(0, most);
    const contents = page.map(([name, { size }]) => `<Contents>${element("Key", toListed(name))}<Size>${size}</Size></Contents>`);
    const isTruncated = found.length > most;
    const next = isTruncated ? element("NextContinuationToken", `${Buffer.from(page.at(-1)![0]).toString("base64")}+/=&`) : "";
    const encoding = query.has("encoding-type") ? element("EncodingType", "url") : "";
    return toXml("ListBucketResult", `${element("IsTruncated", `${isTruncated}`)}${encoding}${contents.join("")}${next}`);

    function toListed(name: string): string {
      if (!query.has("encoding-type")) return name;
      // Slashes, too, as some stores have it.
      return encodeURIComponent(name).replaceAll("%20", "+");
    }
  }

  function listUploads(bucket: S3Bucket, query: URLSearchParams): Answer {
    const marker = [query.get("key-marker") ?? "", query.get("upload-id-marker") ?? ""].join("\n");
    const found = [...bucket.uploads]
      .map(([id, upload]) => ({ ...upload, id, at: `${upload.key}\n${id}` }))
      .filter((upload) => upload.key.startsWith(query.get("prefix") ?? "") && upload.at > marker)
      .toSorted((one, other) => (one.at < other.at ? -1 : 1));
    const page = found.slice(0, pageSize);
    const uploads = page.map(({ key, id, initiatedAt }) => {
      const initiated = element("Initiated", new Date(initiatedAt).toISOString());
      return `<Upload>${element("Key", encodeURIComponent(key))}${element("UploadId", id)}${initiated}</Upload>`;
    });
    const isTruncated = found.length > pageSize;
    const last = page.at(-1);
    const next = isTruncated
      ? element("NextKeyMarker", encodeURIComponent(last!.key)) + element("NextUploadIdMarker", last!.id)
      : "";
    const head = element("EncodingType", "url") + element("IsTruncated", `${isTruncated}`);
    return toXml("ListMultipartUploadsResult", `${head}${next}${uploads.join("")}`);
  }
}

function checkRequest(
  [name, , told, may, own]: (typeof OPERATIONS)[number],
  query: URLSearchParams,
  headers: IncomingMessage["headers"],
): void {
  if (![...query.keys()].every((word) => told.includes(word) || may.includes(word))) throw new S3Refusal(400, "InvalidArgument");
  if (!Object.keys(headers).every((word) => ALWAYS.includes(word) || own.includes(word)))
    throw new S3Refusal(501, "NotImplemented");
  const mayHaveBody = ["PutObject", "UploadPart", "CompleteMultipartUpload", "CreateMultipartUpload"].includes(name);
  if (mayHaveBody && headers["content-length"] === undefined) throw new S3Refusal(411, "MissingContentLength");
}

function readObject(object: S3Object | undefined, range: string | undefined): Answer {
  if (object === undefined) throw new S3Refusal(404, "NoSuchKey");
  const { size, chunks, etag, modifiedAt, metadata } = object;
  const headers = { etag, "last-modified": new Date(modifiedAt).toUTCString(), ...metadata };
  if (range === undefined) return { status: 200, headers: { ...headers, "content-length": `${size}` }, chunks };
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(range) ?? [];
  const start = Number(from);
  const end = Math.min(to ? Number(to) : size - 1, size - 1);
  if (!(start < size)) throw new S3Refusal(416, "InvalidRange");
  const contentRange = `bytes ${start}-${end}/${size}`;
  const length = `${end - start + 1}`;
  return {
    status: 206,
    headers: { ...headers, "content-range": contentRange, "content-length": length },
    chunks: slice(chunks, start, end + 1),
  };
}

function shorten({ status, headers, chunks = [] }: Answer): Answer {
  const size = Number(headers?.["content-length"]) - 1;
  return { status, headers: { ...headers, "content-length": `${size}` }, chunks: slice(chunks, 0, size) };
}

function slice(chunks: readonly Buffer[], start: number, past: number): Buffer[] {
  let at = 0;
  return chunks.flatMap((chunk) => {
    const piece = chunk.subarray(Math.max(0, start - at), Math.max(0, past - at));
    at += chunk.byteLength;
    return piece.byteLength > 0 ? [piece] : [];
  });
}

async function sendAnswer(
  response: ServerResponse,
  method: string,
  { status, headers = {}, chunks = [] }: Answer,
  isCut: boolean,
) {
  const size = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  response.writeHead(status, { "content-length": `${size}`, ...headers });
  if (method === "HEAD") return void response.end();
  if (!isCut) return pipeline(Readable.from(chunks), response);
  response.write(
    slice(chunks, 0, Math.ceil(size / 2)).reduce((all, chunk) => Buffer.concat([all, chunk]), Buffer.alloc(0)),
    () => response.socket?.destroy(),
  );
}

function toXml(root: string, content: string, status = 200, before = ""): Answer {
  const text = `${before}<?xml version="1.0" encoding="UTF-8"?>\n<${root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${content}</${root}>`;
  return { status, headers: { "content-type": "application/xml" }, chunks: [Buffer.from(text)] };
}

function element(name: string, text: string): string {
  return `<${name}>${text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")}</${name}>`;
}

function elements(element: XmlElement): XmlElement[] {
  return element.children.filter((child) => child instanceof XmlElement);
}
