import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { sqliteLog } from "@portico/adapters/log/sqlite";
import type { Adapter, Secret } from "@portico/core";
import { instanceIdentity } from "./instance-identity.ts";
import { instanceSigning } from "./instance-signing.ts";
import type { PlatformOptions } from "./platform-options.ts";

/** What every service that accepts work has beside storage: who the instance is, what it signs with, and durable work with its log. */
export function instanceAdapters({ settings, onTokenMade }: PlatformOptions): readonly Adapter[] {
  const instance = { tokens: settings.agent.tokens, onMade: (token: Secret) => onTokenMade?.(token, "agent") };
  return [instanceIdentity(instance), instanceSigning(instance), sqliteLog({}), embeddedEngine({})];
}
