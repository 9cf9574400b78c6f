import { existsSync } from "node:fs";
import { memorySecrets } from "@portico/adapters/secrets/memory";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { createApp, ports } from "@portico/core";
import { createSafeTokens } from "@portico/plugins/model-proxy/safe-tokens";
import { serviceTokens } from "@portico/presets/platform/own-token";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { DataDirectory } from "../data-directory.ts";
import { storesElsewhere } from "../instance-stores.ts";
import type { InstanceTokens } from "../loops/provider-loop.ts";

/**
 * Calls `use` with the tokens of this instance. Creates nothing. Opens the records only if safe tokens are needed, because opening migrates a store
 * of an earlier version. A store that cannot be opened counts as empty; other checks report it.
 */
export async function withOwnTokens<T>(
  settings: PlatformSettings,
  directory: DataDirectory,
  { withSafeTokens }: { readonly withSafeTokens: boolean },
  use: (own: InstanceTokens) => Promise<T>,
): Promise<T> {
  const areElsewhere = storesElsewhere(settings, [ports.records, ports.secrets]).length > 0;
  const hasRecords = !areElsewhere && withSafeTokens && existsSync(directory.records);
  const isOpened = !areElsewhere && (hasRecords || existsSync(directory.credentials));
  const stored = sqliteStore({ dir: directory.path, ports: [ports.secrets, ...(hasRecords ? [ports.records] : [])] });
  const app =
    (isOpened ? await createApp({ name: "doctor", adapters: stored }).catch(() => undefined) : undefined) ??
    (await createApp({ name: "doctor", adapters: [memorySecrets()] }));
  try {
    const secrets = app.port(ports.secrets);
    const service = await serviceTokens(settings, secrets).catch(() => []);
    return await use({ secrets, service, safe: safeTokensOf() });
  } finally {
    await app.close();
  }

  function safeTokensOf() {
    if (!app.has(ports.records)) return undefined;
    return createSafeTokens({
      records: app.port(ports.records),
      secrets: app.port(ports.secrets),
      clock: app.port(ports.clock),
      ids: app.port(ports.ids),
    });
  }
}
