/** A token that a command printed. */
export interface PrintedToken {
  readonly value: string;
  /** Milliseconds since 1970. Undefined if the output names no end. */
  readonly endsAt: number | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads the output of a command: the token alone, or a JSON object in one of three forms. `status.token` with
 * `status.expirationTimestamp` is Kubernetes' ExecCredential (client.authentication.k8s.io/v1). `accessToken` with `expires_on` in seconds
 * since 1970 is `az account get-access-token`. `access_token` with `expires_in` in seconds is OAuth 2.0 (RFC 6749, 5.1). Undefined without
 * a valid token: visible ASCII characters, which a header accepts.
 */
export function readToken(output: string, now: number): PrintedToken | undefined {
  const text = output.trim();
  const token = text.startsWith("{") ? readObject(text, now) : { value: text, endsAt: undefined };
  return token && /^[\x21-\x7e]+$/.test(token.value) ? token : undefined;
}

function readObject(text: string, now: number): PrintedToken | undefined {
  const printed = parseFields(text);
  const status = printed?.["status"] as Fields | null | undefined;
  if (typeof status?.["token"] === "string")
    return { value: status["token"], endsAt: validTime(Date.parse(String(status["expirationTimestamp"]))) };
  if (typeof printed?.["accessToken"] === "string")
    return { value: printed["accessToken"], endsAt: validTime(secondsOf(printed["expires_on"])) };
  if (typeof printed?.["access_token"] === "string")
    return { value: printed["access_token"], endsAt: validTime(now + secondsOf(printed["expires_in"])) };
  return undefined;
}

/** Some programs print numbers as strings. Milliseconds. */
function secondsOf(written: unknown): number {
  return typeof written === "number" || typeof written === "string" ? Number(written) * 1_000 : Number.NaN;
}

function validTime(ms: number): number | undefined {
  return Number.isFinite(ms) ? ms : undefined;
}

function parseFields(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}
