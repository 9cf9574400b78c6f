import { CallFailed } from "@portico/core/client";

export interface UploadRequest {
  readonly file: File;
  /** The fraction of sent bytes, 0 to 1. */
  readonly onProgress: (sent: number) => void;
  readonly signal: AbortSignal;
}

/**
 * Sends a file in the form field `file`, by XMLHttpRequest, because browsers' `fetch` reports no upload progress. Resolves with the response's JSON. Throws
 * CallFailed if the service refuses the file, TypeError (like `fetch`) if the service cannot be reached, and the signal's reason.
 */
export function upload(
  url: string,
  { file, onProgress, signal, headers }: UploadRequest & { readonly headers: Readonly<Record<string, string>> },
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = new XMLHttpRequest();
    const stop = () => request.abort();
    signal.addEventListener("abort", stop, { once: true });
    request.addEventListener("loadend", () => signal.removeEventListener("abort", stop));
    request.upload.addEventListener("progress", ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0));
    request.addEventListener("abort", () => reject(signal.reason));
    request.addEventListener("error", () => reject(new TypeError("The upload was interrupted")));
    request.addEventListener("load", () => {
      const { status, response } = request;
      if (status >= 200 && status < 300) return resolve(response);
      const code = (response as { readonly error?: unknown } | null)?.error;
      reject(new CallFailed(status, typeof code === "string" ? code : "unknown", response, new Headers()));
    });
    request.open("POST", url);
    request.responseType = "json";
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    const form = new FormData();
    form.append("file", file);
    request.send(form);
  });
}
