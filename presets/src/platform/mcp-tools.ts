import { mcpTools } from "@portico/adapters/tools/mcp";
import type { Adapter } from "@portico/core";
import type { PlatformSettings } from "../settings/platform.ts";

/** One source of tools for each configured MCP server, under the name that it was configured by. */
export function mcpToolSources({ mcpServers }: Pick<PlatformSettings, "mcpServers">): readonly Adapter[] {
  return Object.entries(mcpServers).map(([id, server]) => mcpTools({ id, ...server }));
}
