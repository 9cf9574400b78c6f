import { readFile } from "node:fs/promises";
import {
  type CredentialSource,
  createKnownSecrets,
  createRenewal,
  type Ending,
} from "@portico/adapters/models/upstream-provider";
import { ports } from "@portico/core";
import * as v from "valibot";

/** A token of Google, with the project that pays for the call, if the credentials name one. */
export interface GoogleToken {
  readonly token: string;
  readonly quotaProject?: string | undefined;
}

/** Tokens of Google live for an hour. If a client does not say when its token ends, it is read again soon. */
const UNKNOWN_LIFE_MS = 10 * 60_000;
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/** Sends a token of Google with each request. It is renewed five minutes before its end, once for all calls. */
export function createGoogleToken(
  from: { readonly provider: string; readonly read: () => Promise<Ending<GoogleToken>> },
  clock: ports.Clock,
): CredentialSource {
  const known = createKnownSecrets([]);
  const read = async () => {
    const next = await from.read();
    known.replace([next.value.token]);
    return next;
  };
  const renewal = createRenewal(`Provider "${from.provider}" could not get a token of Google`, read, clock);
  return {
    async headersFor() {
      const { token, quotaProject } = await renewal.current();
      return { authorization: `Bearer ${token}`, ...(quotaProject !== undefined && { "x-goog-user-project": quotaProject }) };
    },
    secrets: known.all,
  };
}

/**
 * Reads a new token with each call, by the key file of a service account, or by Application Default Credentials: the file of
 * `GOOGLE_APPLICATION_CREDENTIALS`, the login of gcloud, or the metadata of the machine. `send` sends the requests for tokens.
 */
export function readGoogleToken(keyFile: string | undefined, send: typeof fetch | undefined): () => Promise<Ending<GoogleToken>> {
  return async () => {
    const { GoogleAuth, JWT } = await import("google-auth-library");
    const own = send && { transporterOptions: { fetchImplementation: send } };
    // A new client each time: files may have changed, and a client keeps its token.
    const client = keyFile
      ? new JWT({ ...(await readKey(keyFile)), scopes: [SCOPE], ...own })
      : await new GoogleAuth({ scopes: [SCOPE], ...(own && { clientOptions: own }) }).getClient();
    const { token } = await client.getAccessToken();
    if (!token) throw new Error("The credentials gave no token");
    const { expiry_date: endsAt } = client.credentials;
    const value = { token, quotaProject: client.quotaProjectId };
    return { value, endsAt: endsAt ?? Date.now() + UNKNOWN_LIFE_MS };
  };
}

/** Other kinds of files name programs and addresses of tokens: only the machine's own setting may choose those. */
const serviceAccount = v.object({
  type: v.literal("service_account"),
  client_email: v.string(),
  private_key: v.string(),
  private_key_id: v.optional(v.string()),
});

async function readKey(file: string): Promise<{ readonly email: string; readonly key: string; readonly keyId?: string }> {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), serviceAccount), await readFile(file, "utf8"));
  if (!parsed.success) throw new ports.ModelUnreachable("The keyFile of a provider is not the key file of a service account");
  const { client_email: email, private_key: key, private_key_id: keyId } = parsed.output;
  return { email, key, ...(keyId !== undefined && { keyId }) };
}
