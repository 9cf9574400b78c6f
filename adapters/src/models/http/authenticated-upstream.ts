import { Readable } from "node:stream";
import { orAborted, type ports } from "@portico/core";
import type { CredentialSource, RequestHeaders } from "./credentials.ts";
import type { Upstream } from "./upstream.ts";

/** More than the keys of a provider. */
const MOST_CREDENTIALS = 100;

/**
 * Adds the provider's own headers and credential to each request. A credential that is ready adds no wait. A request whose credential
 * fails is not sent, and its body is destroyed. A refused request is sent again if its source has another credential for it: never a
 * request whose body is a stream, because its bytes are gone.
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
    request(request, signal) {
      const own = from.headers();
      const headers = { ...request.headers, ...own };
      const isStream = request.body instanceof Readable;
      const unsigned = { ...request, origin, headers, body: isStream ? undefined : (request.body as Uint8Array | undefined) };
      const ready = headersOf(unsigned, signal);
      const sendWith = (given: RequestHeaders) =>
        upstream.request({ ...request, headers: { ...headers, ...given, ...own } }, signal);
      if (!credentials.answered && !(ready instanceof Promise)) return sendWith(ready);

      const attempt = async (count: number, given: RequestHeaders): Promise<ports.ModelAnswer> => {
        const answer = await sendWith(given);
        const isWorthwhile = credentials.answered?.(given, answer) === true;
        if (!isWorthwhile || isStream || count >= MOST_CREDENTIALS || signal?.aborted) return answer;
        const next = await orAborted(Promise.resolve(headersOf(unsigned, signal)), signal).catch(() => undefined);
        // Without another credential, the caller gets the answer that is there.
        if (!next) return answer;
        answer.body.destroy();
        return attempt(count + 1, next);
      };
      return orAborted(Promise.resolve(ready), signal).then(
        (given) => attempt(1, given),
        (error: Error) => {
          if (request.body instanceof Readable) request.body.destroy();
          throw error;
        },
      );
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
