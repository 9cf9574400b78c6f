import { type ports, Secret, withoutEnd } from "@portico/core";
import type { HttpProviderOptions } from "./http-options.ts";

/** A provider that was found on this machine, with a description of its source. */
export interface FoundProvider {
  readonly protocol: ports.ModelProtocol;
  readonly source: string;
  readonly options: HttpProviderOptions & { readonly credential?: Secret | undefined };
}

interface Vendor {
  readonly id: string;
  readonly protocol: ports.ModelProtocol;
  /** Environment variables that may hold the key, the usual one first. */
  readonly keys: readonly string[];
  /** Environment variable with another base URL, as the vendor's own client libraries read it. */
  readonly addressVariable?: string;
  readonly baseUrl: string;
}

const VENDORS: readonly Vendor[] = [
  {
    id: "anthropic",
    protocol: "messages",
    keys: ["ANTHROPIC_API_KEY"],
    addressVariable: "ANTHROPIC_BASE_URL",
    baseUrl: "https://api.anthropic.com/v1",
  },
  {
    id: "openai",
    protocol: "chat-completions",
    keys: ["OPENAI_API_KEY"],
    addressVariable: "OPENAI_BASE_URL",
    baseUrl: "https://api.openai.com/v1",
  },
  {
    id: "google",
    protocol: "chat-completions",
    keys: ["GEMINI_API_KEY"],
    baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
  },
  { id: "openrouter", protocol: "chat-completions", keys: ["OPENROUTER_API_KEY"], baseUrl: "https://openrouter.ai/api/v1" },
  { id: "mistral", protocol: "chat-completions", keys: ["MISTRAL_API_KEY"], baseUrl: "https://api.mistral.ai/v1" },
  { id: "groq", protocol: "chat-completions", keys: ["GROQ_API_KEY"], baseUrl: "https://api.groq.com/openai/v1" },
  { id: "deepseek", protocol: "chat-completions", keys: ["DEEPSEEK_API_KEY"], baseUrl: "https://api.deepseek.com/v1" },
  { id: "xai", protocol: "chat-completions", keys: ["XAI_API_KEY"], baseUrl: "https://api.x.ai/v1" },
  { id: "together", protocol: "chat-completions", keys: ["TOGETHER_API_KEY"], baseUrl: "https://api.together.xyz/v1" },
];

/** A model server that runs on this machine. */
export interface LocalServer {
  readonly id: string;
  /** Everything before `/models`. */
  readonly baseUrl: string;
}

/** Servers that people run themselves, on their default ports. */
const LOCAL_SERVERS: readonly LocalServer[] = [
  { id: "ollama", baseUrl: "http://127.0.0.1:11434/v1" },
  { id: "lmstudio", baseUrl: "http://127.0.0.1:1234/v1" },
  { id: "llamacpp", baseUrl: "http://127.0.0.1:8080/v1" },
];

/** A local server answers at once or does not exist: the start must not wait for it. */
const LOCAL_ANSWER_MS = 300;

/**
 * Providers that this machine already has: keys in the usual environment variables, and local model servers that return a list of
 * models (open points 2, `autoProviders`). Never throws. Sends no request to a vendor.
 */
export async function findProviders(at: {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Which local servers to look for; default: the usual ones on their usual ports. */
  readonly localServers?: readonly LocalServer[];
  readonly signal?: AbortSignal;
  /** IDs of local servers that were found already: they are not asked, and others are left out. Default: all are asked. */
  readonly found?: readonly string[] | undefined;
}): Promise<FoundProvider[]> {
  const servers = at.localServers ?? LOCAL_SERVERS;
  const local = at.found
    ? servers.filter(({ id }) => at.found?.includes(id)).map(localProvider)
    : await Promise.all(servers.map((server) => findLocal(server, at.signal)));
  return [...VENDORS.flatMap((vendor) => findKey(vendor, at.env)), ...local.flat()];
}

function findKey(vendor: Vendor, env: Readonly<Record<string, string | undefined>>): FoundProvider[] {
  // A line end from a shell does not belong to the key.
  const found = vendor.keys.map((name) => ({ name, key: env[name]?.trim() })).find(({ key }) => key);
  if (!found?.key) return [];
  const { id, protocol } = vendor;
  const baseUrl = baseUrlOf(vendor, env);
  const options = { id, type: id, baseUrl, credential: new Secret(found.key), models: "discover" } as const;
  return [{ protocol, source: `environment variable ${found.name}`, options }];
}

function baseUrlOf(vendor: Vendor, env: Readonly<Record<string, string | undefined>>): string {
  const moved = vendor.addressVariable && env[vendor.addressVariable]?.trim();
  if (!moved) return vendor.baseUrl;
  // The Messages vendor's libraries take the URL without the version, which our base URLs include.
  return vendor.protocol === "messages" && !/\/v\d+\/?$/.test(moved) ? `${withoutEnd(moved, "/")}/v1` : moved;
}

async function findLocal(server: LocalServer, signal: AbortSignal | undefined): Promise<FoundProvider[]> {
  try {
    const answer = await fetch(`${server.baseUrl}/models`, {
      // Redirects are refused, because they could lead to another machine.
      redirect: "error",
      signal: AbortSignal.any([AbortSignal.timeout(LOCAL_ANSWER_MS), ...(signal ? [signal] : [])]),
    });
    const list = answer.ok ? ((await answer.json()) as { readonly data?: unknown } | null) : null;
    if (!Array.isArray(list?.data) || list.data.length === 0) return [];
  } catch {
    return [];
  }
  return [localProvider(server)];
}

function localProvider({ id, baseUrl }: LocalServer): FoundProvider {
  const options = { id, type: id, baseUrl, models: "discover" } as const;
  return { protocol: "chat-completions", source: `local model server at ${baseUrl}`, options };
}
