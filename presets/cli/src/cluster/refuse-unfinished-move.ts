import { isMoveUnfinished } from "@portico/cluster/stores/move-store";
import { ports } from "@portico/core";
import { clusterStore } from "@portico/presets/cluster/store";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { withClusterApp } from "./cluster-app.ts";

/** Throws CommandFailed (78) if `portico move` into this cluster has not finished: a part of the data is missing. */
export async function refuseUnfinishedMove(settings: PlatformSettings): Promise<void> {
  const isUnfinished = await withClusterApp(clusterStore(settings, [ports.records]), (app) =>
    isMoveUnfinished(app.port(ports.records)),
  );
  if (isUnfinished) throw new CommandFailed(UNFINISHED_MOVE, EXIT.config);
}

/** What to do about an unfinished move. */
export const UNFINISHED_MOVE =
  "A move into this cluster has not finished, and a part of its data is missing: repeat the move, or choose an empty schema";
