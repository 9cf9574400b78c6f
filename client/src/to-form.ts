import { randomId } from "./random-id.ts";

/**
 * What can be uploaded. A `File` or `Blob` is read while it is sent (in Node.js, `openAsBlob` makes one of a file). A stream
 * works where `fetch` can send one: in Node.js, and over HTTP/2 in browsers that support it.
 */
export type UploadSource = Blob | ReadableStream<Uint8Array>;

/** Options of an upload. */
export interface UploadOptions {
  /** File name. Default: the name of a `File`, otherwise `file`. */
  readonly name?: string | undefined;
  /** MIME type. Default: the type of a `Blob`, otherwise `application/octet-stream`. */
  readonly type?: string | undefined;
  /** Aborts the upload. The service keeps no part of it. */
  readonly signal?: AbortSignal | undefined;
}

/** The form with one file, as the service requires it. Throws TypeError for a type that is not a valid header value. */
export function toForm(source: UploadSource, { name, type }: Pick<UploadOptions, "name" | "type">): FormBody {
  if (type !== undefined && !/^[\x20-\x7e]*$/.test(type)) throw new TypeError("A MIME type is visible ASCII characters");
  if (!(source instanceof Blob))
    return toStreamedForm(source, { name: name ?? "file", type: type ?? "application/octet-stream" });
  const body = new FormData();
  // The same bytes under another type.
  const blob = type === undefined ? source : source.slice(0, source.size, type);
  body.append("file", blob, name ?? ("name" in source ? String(source.name) : "file"));
  return { body, headers: {}, end() {} };
}

export interface FormBody {
  readonly body: FormData | ReadableStream<Uint8Array>;
  readonly headers: Readonly<Record<string, string>>;
  /** The upload has ended: the source is not read any further. */
  end(): void;
}

/** For streams, which `FormData` does not accept. */
function toStreamedForm(
  source: ReadableStream<Uint8Array>,
  { name, type }: { readonly name: string; readonly type: string },
): FormBody {
  const boundary = randomId("portico-");
  const text = new TextEncoder();
  const disposition = `Content-Disposition: form-data; name="file"; filename="${quoted(name)}"`;
  const head = text.encode(`--${boundary}\r\n${disposition}\r\nContent-Type: ${type}\r\n\r\n`);
  const tail = text.encode(`\r\n--${boundary}--\r\n`);
  const reader = source.getReader();
  let isOver = false;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(head),
    async pull(controller) {
      const { done, value } = await reader.read();
      // A cancelled source ends like a complete one. It must not be taken for the end of the file.
      if (isOver) return controller.error(new Error("The upload has ended"));
      controller.enqueue(done ? tail : value);
      if (done) controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return {
    body,
    headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
    // Node's `fetch` keeps reading a stream after an abort and after an early refusal.
    end() {
      isOver = true;
      reader.cancel().catch(() => {});
    },
  };
}

/** Quotes names in forms as browsers do. */
function quoted(name: string): string {
  return name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
