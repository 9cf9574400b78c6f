import { rmdir } from "node:fs/promises";
import { join } from "node:path";
import { ports } from "@portico/core";
import { agentSchema } from "./agent-schema.ts";
import { checkAgentText } from "./check-agent-text.ts";

/** What a file system without write access answers. */
const NO_WRITES: ReadonlySet<unknown> = new Set(["EROFS", "EACCES", "EPERM"]);

/** The texts of agents that are documents named `ID/FILE`. */
export function agentTexts({
  documents,
  directory,
  file,
}: {
  readonly documents: ports.Documents;
  /** The folder with one folder per agent, if the documents are files. */
  readonly directory: string | undefined;
  readonly file: string;
}): ports.AgentTexts {
  const nameOf = (id: string): string => {
    if (!ports.AGENT_ID.test(id)) throw new TypeError("Invalid id of an agent");
    return `${id}/${file}`;
  };
  const writing = async <T>(write: () => Promise<T>): Promise<T> => {
    if (documents.isReadOnly) throw new ports.AgentTextsReadOnly("The store of the agents takes no writes");
    try {
      return await write();
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
      if (!NO_WRITES.has(code)) throw error;
      throw new ports.AgentTextsReadOnly("The folder of the agents takes no writes", { cause: error });
    }
  };
  return {
    schema: agentSchema,
    check: checkAgentText,
    read: async (id) => documents.read(nameOf(id)),
    write: async (id, text, expected) => writing(() => documents.write(nameOf(id), text, expected)),
    async remove(id, expected) {
      const wasThere = await writing(() => documents.remove(nameOf(id), expected));
      // A folder with other files stays: only their owner knows what they are for.
      if (wasThere && directory !== undefined) await rmdir(join(directory, id)).catch(() => {});
      return wasThere;
    },
  };
}
