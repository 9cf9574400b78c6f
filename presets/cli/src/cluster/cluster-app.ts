import { type Adapter, type App, createApp, findStoreMismatch, isStoreAway, ports } from "@portico/core";
import { CommandFailed, EXIT } from "../exit-codes.ts";

/** Open stores of a cluster for a command, and close them afterwards. Throws what `toCommandFailed` makes of errors. */
export async function withClusterApp<T>(adapters: readonly Adapter[], use: (app: App) => Promise<T>): Promise<T> {
  let app: App | undefined;
  try {
    app = await createApp({ name: "cluster-command", adapters });
    return await use(app);
  } catch (error) {
    throw toCommandFailed(error);
  } finally {
    await app?.close();
  }
}

/** Errors of stores as CommandFailed: 78 for a schema of another version, 69 if the store is unavailable. Other errors stay unchanged. */
export function toCommandFailed(error: unknown): unknown {
  const mismatch = findStoreMismatch(error);
  if (mismatch) return new CommandFailed(mismatch.message, EXIT.config, error);
  const isOutside =
    isStoreAway(error) ||
    error instanceof ports.BlobsUnavailable ||
    error instanceof ports.DocumentsUnavailable ||
    error instanceof ports.SecretsUnavailable;
  return isOutside ? new CommandFailed((error as Error).message, EXIT.unavailable, error) : error;
}
