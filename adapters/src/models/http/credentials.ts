import { type Live, type ports, type Scope, Secret } from "@portico/core";

/** Headers by lowercase name. */
export type RequestHeaders = Readonly<Record<string, string>>;

/** One request to an upstream, as a credential source sees it. A signature covers these parts. */
export interface UnsignedRequest {
  readonly method: "GET" | "POST";
  /** Scheme, host and port, as in `https://api.example.com`. */
  readonly origin: string;
  /** Path and query, from the origin. */
  readonly path: string;
  /** All headers that will be sent, except those of the credential and `host`. */
  readonly headers: RequestHeaders;
  /** The bytes of the body. Undefined if the request has no body, or if the body is a stream. */
  readonly body: Uint8Array | undefined;
}

/** What authenticates the requests of one provider: a fixed key, a token that expires, or a signature of each request. */
export interface CredentialSource {
  /**
   * The headers that authenticate one request. The headers of the settings have priority over them. May renew a token: concurrent
   * requests share one renewal, and an aborted signal ends only the wait of its own request. Throws or rejects with ModelUnreachable,
   * whose message contains no secret, with ModelTimeout, or with the signal's reason.
   */
  headersFor(request: UnsignedRequest, signal: AbortSignal | undefined): RequestHeaders | Promise<RequestHeaders>;
  /**
   * The texts that callers must not see: the present secrets, and recent ones that calls in progress may have used. Returns the same
   * array until they change.
   */
  secrets(): readonly string[];
  /**
   * Learns from the answer to a request that had `headers`, an object that `headersFor` returned. Returns whether the request may be
   * accepted with another credential: then it is sent again at once, if its body allows that. Default: it is not.
   */
  answered?(headers: RequestHeaders, answer: Pick<ports.ModelAnswer, "headers" | "status" | "whole">): boolean;
}

/** Rotated credentials whose texts are still redacted: calls in progress began with them. */
const MOST_EARLIER = 16;

/** The texts of present and earlier secrets: `replace` keeps those of the 16 latest rotations. */
export function createKnownSecrets(first: readonly string[]) {
  let present = first;
  let earlier: readonly string[] = [];
  let all = first;
  return {
    all: (): readonly string[] => all,
    replace(next: readonly string[]): void {
      earlier = [...new Set([...present, ...earlier])].slice(0, MOST_EARLIER);
      present = next;
      all = [...next, ...earlier];
    },
  };
}

/** A source whose key changes only by rotation of the settings. Its headers are ready, so that no call waits for them. */
export function createFixedCredential(
  headerOf: (credential: string) => RequestHeaders,
  options: {
    readonly credential?: Secret | undefined;
    readonly rotation?: Live<{ readonly credential?: object | undefined } | undefined> | undefined;
  },
  scope: Scope,
): CredentialSource {
  const textsOf = (credential: Secret | undefined) => (credential ? [credential.reveal()] : []);
  const headersOf = (credential: Secret | undefined) => (credential ? headerOf(credential.reveal()) : {});
  const known = createKnownSecrets(textsOf(options.credential));
  let headers = headersOf(options.credential);
  if (options.rotation)
    scope.onClose(
      options.rotation.follow((next) => {
        const credential = next?.credential;
        // A credential of another kind takes effect at the next start.
        if (!next || (credential && !(credential instanceof Secret))) return () => {};
        const rotated = headersOf(credential);
        return () => {
          headers = rotated;
          known.replace(textsOf(credential));
        };
      }),
    );
  return { headersFor: () => headers, secrets: known.all };
}
