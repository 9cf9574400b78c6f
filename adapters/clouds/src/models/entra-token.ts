import { type CredentialSource, createKnownSecrets, createRenewal } from "@portico/adapters/models/upstream-provider";
import type { ports } from "@portico/core";

/** A credential of `@azure/identity`, or of your own. */
export interface EntraCredential {
  getToken(scope: string): Promise<{ readonly token: string; readonly expiresOnTimestamp: number } | null>;
}

/** Whose tokens are sent, and to which resource. */
export interface EntraOptions {
  /** Id of the provider, for error messages. */
  readonly provider: string;
  /** The address of the resource. The scope of its tokens follows from it. */
  readonly baseUrl: string;
  /** Default: {@link defaultEntraCredential}. */
  readonly credential: EntraCredential;
}

/** Clouds of governments have their own scopes (learn.microsoft.com, Azure Government and Azure China, endpoints). */
const SCOPES: readonly (readonly [host: RegExp, scope: string])[] = [
  [/\.azure\.us$/, "https://cognitiveservices.azure.us/.default"],
  [/\.azure\.cn$/, "https://cognitiveservices.azure.cn/.default"],
  // Models of Foundry take this one (langchain-ai/langchain-azure#787), and those of Azure OpenAI the last one.
  [/\.services\.ai\.azure\.com$/, "https://ai.azure.com/.default"],
  [/(?:)/, "https://cognitiveservices.azure.com/.default"],
];

/** Sends tokens of Microsoft Entra. A token is renewed five minutes before its end, once for all calls. For the option `credentials`. */
export function entraToken({ provider, baseUrl, credential }: EntraOptions): (clock: ports.Clock) => CredentialSource {
  const host = new URL(baseUrl).hostname;
  const scope = SCOPES.find(([pattern]) => pattern.test(host))![1];
  return (clock) => {
    const known = createKnownSecrets([]);
    const read = async () => {
      const given = await credential.getToken(scope);
      if (!given?.token) throw new Error("The credential gave no token");
      known.replace([given.token]);
      return { value: given.token, endsAt: given.expiresOnTimestamp };
    };
    const renewal = createRenewal(`Provider "${provider}" could not get a token of Microsoft Entra`, read, clock);
    return {
      headersFor: async () => ({ authorization: `Bearer ${await renewal.current()}` }),
      secrets: known.all,
    };
  };
}

/**
 * The credential of `@azure/identity` that tries the environment, a workload's identity, a managed identity, and the logins of a developer.
 * Undefined if that package is not installed.
 */
export async function defaultEntraCredential(): Promise<EntraCredential | undefined> {
  // Not by a literal: the package has 46 MB, so that only those who use it install it, and the compiler must not look for it.
  const name: string = "@azure/identity";
  try {
    const { DefaultAzureCredential } = (await import(name)) as { readonly DefaultAzureCredential: new () => EntraCredential };
    return new DefaultAzureCredential();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}
