import { defineCommand } from "citty";
import { type SettingsFlags, settingsFlags } from "../settings-flags.ts";

const serviceFlags = {
  url: {
    type: "string",
    valueHint: "url",
    description: "Address of the agent service; default: the service that uses the data directory",
  },
  ...settingsFlags,
} as const;

const oneFlags = {
  schedule: { type: "positional", required: true, valueHint: "agent/name", description: "Agent and name of the schedule" },
  json: { type: "boolean", description: "Print a JSON object" },
  ...serviceFlags,
} as const;

const listCommand = defineCommand({
  meta: { name: "list", description: "List the schedules of all agents with their next times" },
  args: {
    failing: { type: "boolean", description: "Only schedules that fail, or cannot start anything" },
    json: { type: "boolean", description: "Print a JSON array" },
    ...serviceFlags,
  },
  async run({ args }) {
    const [{ chosenSchedules, scheduleTable }, service] = await Promise.all([
      import("../running-schedules.ts"),
      schedulesOf(args),
    ]);
    const all = await service.list();
    const schedules = chosenSchedules(all, args.failing ?? false);
    if (args.json) return printJson(schedules);
    if (schedules.length === 0 && all.length > 0) return console.error("No schedule of an agent fails.");
    if (schedules.length === 0) return console.error("No agent has a schedule that is switched on.");
    console.log(scheduleTable(schedules, ({ agentId }) => agentId));
  },
});

const triggerCommand = defineCommand({
  meta: { name: "trigger", description: "Start a turn now, as the schedule does, and print the id of its run" },
  args: oneFlags,
  async run({ args }) {
    const started = await (await oneOf(args)).trigger();
    if (args.json) return printJson(started);
    console.log(started.runId);
  },
});

const pauseCommand = defineCommand({
  meta: { name: "pause", description: "Start no more turns of a schedule at its planned times" },
  args: oneFlags,
  async run({ args }) {
    await (await oneOf(args)).pause();
    if (args.json) return printJson({ schedule: args.schedule, paused: true });
    console.log(`The schedule ${args.schedule} is paused.`);
  },
});

const resumeCommand = defineCommand({
  meta: { name: "resume", description: "Start turns of a paused schedule at its planned times again" },
  args: oneFlags,
  async run({ args }) {
    await (await oneOf(args)).resume();
    if (args.json) return printJson({ schedule: args.schedule, paused: false });
    console.log(`The schedule ${args.schedule} is active.`);
  },
});

export const scheduleCommand = defineCommand({
  meta: { name: "schedule", description: "List, start, pause and resume the schedules of agents" },
  subCommands: { list: listCommand, trigger: triggerCommand, pause: pauseCommand, resume: resumeCommand },
});

async function oneOf(args: SettingsFlags & { readonly url?: string | undefined; readonly schedule: string }) {
  const { readScheduleName } = await import("../running-schedules.ts");
  const name = readScheduleName(args.schedule);
  const service = await schedulesOf(args);
  return { trigger: () => service.trigger(name), pause: () => service.pause(name), resume: () => service.resume(name) };
}

async function schedulesOf(args: SettingsFlags & { readonly url?: string | undefined }) {
  const [{ readSettings }, { findSchedules }] = await Promise.all([
    import("../read-settings.ts"),
    import("../running-schedules.ts"),
  ]);
  return findSchedules((await readSettings(args)).settings, args.url);
}

async function printJson(value: unknown): Promise<void> {
  const { printableJson } = await import("../terminal.ts");
  console.log(printableJson(value, 2));
}
