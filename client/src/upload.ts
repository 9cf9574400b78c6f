import { randomId } from "./random-id.ts";

/**
 * What can be uploaded: a `File` or `Blob`, which is read while it is sent (in Node.js, `openAsBlob` makes one of a file), or a stream, where
 * `fetch` can send one: in Node.js, and in browsers that can, over HTTP/2.
 */
export type UploadSource = Blob | ReadableStream<Uint8Array>;

export interface UploadOptions {
  /** What the file is called; default: the name of a `File`, and `file` for everything else. */
  readonly name?: string | undefined;
  /** Its MIME type; default: that of a `Blob`, and `application/octet-stream` for everything else. */
  readonly type?: string | undefined;
  /** Ends the upload; nothing of it is kept. */
  readonly signal?: AbortSignal | undefined;
}

/** The form with one file that the service takes. Throws TypeError for a type that no header can hold. */
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
  /** The upload is over: nothing more is read. */
  end(): void;
}

/** A `FormData` takes no streams. */
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
      // A reader that was cancelled reads the end, which must not pass for the file's.
      if (isOver) return controller.error(new Error("The upload is over"));
      controller.enqueue(done ? tail : value);
      if (done) controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return {
    body,
    headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
    // Node's fetch reads on from a stream of which nobody wants anything any more, after an abort as after an early refusal.
    end() {
      isOver = true;
      reader.cancel().catch(() => {});
    },
  };
}

/** As browsers write names in forms. */
function quoted(name: string): string {
  return name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
