import { Readable } from "node:stream";
import { orAborted } from "@portico/core";
import type { CredentialSource, RequestHeaders } from "./credentials.ts";
import type { Upstream } from "./upstream.ts";

/**
 * Adds the provider's own headers and credential to each request. A credential that is ready adds no wait. A request whose credential
 * fails is not sent, and its body is destroyed.
 */
export function createAuthenticatedUpstream(
  upstream: Upstream,
  from: {
    readonly origin: string;
    readonly credentials: CredentialSource;
    /** The headers of the settings, by lowercase name. They have priority over those of the credential. */
    readonly headers: () => RequestHeaders;
  },
): Upstream {
  const { origin, credentials } = from;
  return {
    request({ method, path, headers: given, body }, signal) {
      const own = from.headers();
      const headers = { ...given, ...own };
      const send = (authenticating: RequestHeaders) =>
        upstream.request({ method, path, headers: Object.assign(headers, authenticating, own), body }, signal);
      const ready = headersOf({ method, origin, path, headers, body: body instanceof Readable ? undefined : body }, signal);
      if (!(ready instanceof Promise)) return send(ready);
      return orAborted(ready, signal).then(send, (error: Error) => {
        if (body instanceof Readable) body.destroy();
        throw error;
      });
    },
    close: () => upstream.close(),
  };

  /** A source that throws is as one that rejects. */
  function headersOf(...asked: Parameters<CredentialSource["headersFor"]>): ReturnType<CredentialSource["headersFor"]> {
    try {
      return credentials.headersFor(...asked);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }
}
