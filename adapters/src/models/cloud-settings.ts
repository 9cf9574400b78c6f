import { filePath, type ports } from "@portico/core";
import * as v from "valibot";

/** The settings of providers in clouds. `providerFault` says which of them a protocol has. */
export const cloudSettings = {
  region: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[a-z0-9-]{1,64}$/, "a region, such as eu-central-1"),
      v.description("`bedrock`, `vertex`: the region. Vertex AI also has `global`, `us` and `eu`."),
    ),
  ),
  profile: v.optional(
    v.pipe(
      v.string(),
      v.nonEmpty(),
      v.description("`bedrock`: a profile of the shared files of AWS. Default: AWS's usual order of places for credentials."),
    ),
  ),
  project: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[a-z0-9:.-]{1,128}$/, "the id of a project"),
      v.description("`vertex`: the id of the project in Google Cloud."),
    ),
  ),
  keyFile: v.optional(
    v.pipe(
      filePath(),
      v.description("`vertex`: the key file of a service account. Default: Google's Application Default Credentials."),
    ),
  ),
  apiVersion: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[\w.-]{1,40}$/, "a version, such as 2024-10-21"),
      v.description(
        "`azure`: sends calls to the addresses of deployments, with this `api-version`. Default: the addresses of `/openai/v1`.",
      ),
    ),
  ),
  entra: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        "Sends tokens of Microsoft Entra in place of a key: for providers in Azure. Needs `@portico/clouds` and `@azure/identity`.",
      ),
    ),
    false,
  ),
};

type CloudKey = keyof typeof cloudSettings;
type Key = CloudKey | "baseUrl" | "credential" | "keys" | "models";

/** The wire format of a provider's calls: clouds send one of the published protocols. */
export function wireProtocol(
  protocol: "messages" | "chat-completions" | "responses" | "bedrock" | "vertex" | "azure" | "ai-sdk",
): ports.ModelProtocol {
  if (protocol === "azure") return "chat-completions";
  return protocol === "chat-completions" ? protocol : "messages";
}

/** What the check of a provider reads. */
interface CheckedProvider extends Partial<Readonly<Record<Exclude<Key, "models">, unknown>>> {
  readonly protocol: string;
  readonly models: readonly unknown[] | "discover";
}

/** A key that does not fit its provider, and what was expected in its place. */
export interface ProviderFault {
  readonly key: Key;
  readonly expected: string;
}

interface Kind {
  readonly needs: readonly Key[];
  readonly takes: readonly Key[];
  /** Why the models must be named. Undefined if the upstream lists them. */
  readonly unlisted?: string;
}

const HTTP: Kind = { needs: ["baseUrl"], takes: ["credential", "keys", "entra"] };

const KINDS: Readonly<Record<string, Kind>> = {
  messages: HTTP,
  "chat-completions": HTTP,
  responses: HTTP,
  bedrock: {
    needs: ["region"],
    takes: ["baseUrl", "credential", "keys", "profile"],
    unlisted: "Bedrock lists models that an account cannot call, and needs other rights for it",
  },
  vertex: {
    needs: ["region", "project"],
    takes: ["baseUrl", "keyFile"],
    unlisted: "Vertex AI lists models that a project has not enabled",
  },
  azure: {
    needs: ["baseUrl"],
    takes: ["credential", "keys", "entra", "apiVersion"],
    unlisted: "Azure takes names of deployments, and lists other names",
  },
  "ai-sdk": { needs: [], takes: ["credential"], unlisted: "packages of the AI SDK list no models" },
};

const KEYS = [...(Object.keys(cloudSettings) as CloudKey[]), "baseUrl", "credential", "keys"] as const;

/** The keys of a provider that its protocol does not have, or that are missing. */
export function providerFaults(provider: CheckedProvider): readonly ProviderFault[] {
  const kind = KINDS[provider.protocol] ?? HTTP;
  const isSet = (key: Exclude<Key, "models">) => provider[key] !== undefined && provider[key] !== false;
  const faults: ProviderFault[] = [];
  for (const key of KEYS) {
    if (kind.needs.includes(key) && !isSet(key))
      faults.push({ key, expected: `a value: a provider of the protocol "${provider.protocol}" needs it` });
    if (isSet(key) && !kind.needs.includes(key) && !kind.takes.includes(key)) faults.push({ key, expected: nothing(key) });
  }
  if (kind.unlisted !== undefined && provider.models === "discover")
    faults.push({ key: "models", expected: `a list of names: ${kind.unlisted}` });
  const key = (["credential", "keys"] as const).find(isSet);
  const other = (["entra", "profile"] as const).find(isSet);
  if (key && other && kind.takes.includes(other)) faults.push({ key, expected: `nothing: \`${other}\` takes its place` });
  if (provider.protocol === "azure" && !key && !other)
    faults.push({ key: "credential", expected: "a key of the resource, or `entra: true`" });
  return faults;
}

function nothing(key: Key): string {
  const having = Object.entries(KINDS).flatMap(([name, { needs, takes }]) =>
    needs.includes(key) || takes.includes(key) ? [`"${name}"`] : [],
  );
  return `nothing: only providers of the protocol ${having.join(" or ")} have it`;
}
