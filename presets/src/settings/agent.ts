import { loopSettings } from "@portico/adapters/agent-engines/loop-options";
import { filePath, fromEnv, keySecret, sessionIssuesSettings } from "@portico/core";
import { agentWebhookSettings } from "@portico/plugins/agent-webhook/config";
import { attachmentsMediaSettings } from "@portico/plugins/attachments-media/config";
import {
  agentModelsSettings,
  backgroundRetriesSettings,
  backgroundTurnsSettings,
  turnsSettings,
} from "@portico/plugins/conversations-runs/config";
import * as v from "valibot";
import { documentsSchema } from "./documents.ts";
import { listenSchema, origin, publicUrlSchema, text } from "./listen.ts";

const tokenSchema = v.pipe(
  v.strictObject({
    token: v.pipe(keySecret(), v.description("The token itself.")),
    userId: v.optional(v.pipe(text(), v.description("The user of the token. A token of role `service` has no user."))),
    role: v.pipe(v.picklist(["owner", "member", "service"]), v.description("The permissions of the token.")),
  }),
  v.forward(
    v.check(
      ({ role, userId }) => (role === "service") === (userId === undefined),
      "a user id for owner and member, and none for service",
    ),
    ["userId"],
  ),
);

/** The agent service (open points 1). */
export const agentSchema = v.optional(
  v.strictObject({
    listen: listenSchema("AGENT"),
    publicUrl: publicUrlSchema("AGENT"),
    agentsDir: v.optional(fromEnv("PORTICO_AGENTS_DIR", filePath(), "Folder with one subfolder per agent."), "agents"),
    editable: v.optional(
      fromEnv(
        "PORTICO_AGENT_EDITABLE",
        v.boolean(),
        "Whether the owner can create, change and remove agents by calls and in the web console. Webhooks are another setting: `agent.webhooks.management`.",
      ),
      true,
    ),
    documents: documentsSchema("AGENT", "agents", "agent.agentsDir"),
    ...loopSettings,
    ...backgroundRetriesSettings,
    ...turnsSettings,
    ...agentModelsSettings,
    ...attachmentsMediaSettings,
    allowedOrigins: v.optional(
      fromEnv(
        "PORTICO_ALLOWED_ORIGINS",
        v.array(origin()),
        "Origins of web pages that may call the agent service, in addition to its own.",
      ),
      [],
    ),
    console: v.optional(
      fromEnv(
        "PORTICO_CONSOLE",
        v.boolean(),
        "Whether the web console is served at `/`. Default: the preset's (`local`: yes if `@portico/console` is installed, `agent`: no).",
      ),
    ),
    mcp: v.optional(
      fromEnv(
        "PORTICO_AGENT_MCP",
        v.boolean(),
        "Whether agents whose `agent.json` says `mcp: true` are tools of an MCP server at `/mcp`.",
      ),
      false,
    ),
    webhooks: v.optional(v.strictObject({ ...agentWebhookSettings, ...backgroundTurnsSettings }), {}),
    ...sessionIssuesSettings,
    tokens: v.optional(
      fromEnv(
        "PORTICO_AGENT_TOKENS",
        v.pipe(
          v.array(tokenSchema),
          v.check(
            (tokens) => new Set(tokens.map(({ token }) => token.reveal())).size === tokens.length,
            "another token for each holder",
          ),
        ),
        "Tokens of the agent service. The first owner's token is the instance access token. If no token belongs to an owner, the first start creates it.",
      ),
      [],
    ),
  }),
  {},
);
