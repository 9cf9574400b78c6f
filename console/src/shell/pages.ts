import Activity from "~icons/lucide/activity";
import Bot from "~icons/lucide/bot";
import CalendarClock from "~icons/lucide/calendar-clock";
import ChartLine from "~icons/lucide/chart-line";
import FlaskConical from "~icons/lucide/flask-conical";
import KeyRound from "~icons/lucide/key-round";
import LayoutDashboard from "~icons/lucide/layout-dashboard";
import Plug from "~icons/lucide/plug";
import ScrollText from "~icons/lucide/scroll-text";
import FileClock from "~icons/lucide/file-clock";
import ShieldQuestionMark from "~icons/lucide/shield-question-mark";
import Webhook from "~icons/lucide/webhook";
import Workflow from "~icons/lucide/workflow";
import type { Component } from "svelte";

export interface Page {
  /** First segment of its address. */
  readonly id: string;
  readonly title: string;
  readonly icon: Component;
  /** It shows nothing to users who are not owners: the navigation leaves it out for them. */
  readonly isForOwners?: true;
  /** Loaded when it is first shown. The page reads the further segments of the address from `currentRoute()`. */
  readonly load: () => Promise<{ readonly default: Component }>;
}

/** The page of accounts, which the navigation lists only if MCP servers use accounts. */
export const ACCOUNTS = "accounts";

/** All pages, in the order of the navigation. */
export const pages: readonly Page[] = [
  { id: "", title: "Overview", icon: LayoutDashboard, load: () => import("../pages/Overview.svelte") },
  { id: "providers", title: "Providers", icon: KeyRound, isForOwners: true, load: () => import("../pages/Providers.svelte") },
  { id: ACCOUNTS, title: "MCP accounts", icon: Plug, load: () => import("../pages/Accounts.svelte") },
  {
    id: "playground",
    title: "Playground",
    icon: FlaskConical,
    isForOwners: true,
    load: () => import("../pages/Playground.svelte"),
  },
  { id: "agents", title: "Agents", icon: Bot, load: () => import("../pages/Agents.svelte") },
  { id: "webhooks", title: "Webhooks", icon: Webhook, isForOwners: true, load: () => import("../pages/Webhooks.svelte") },
  {
    id: "schedules",
    title: "Schedules",
    icon: CalendarClock,
    isForOwners: true,
    load: () => import("../pages/Schedules.svelte"),
  },
  { id: "workflows", title: "Workflows", icon: Workflow, load: () => import("../pages/Workflows.svelte") },
  { id: "runs", title: "Runs", icon: Activity, load: () => import("../pages/Runs.svelte") },
  { id: "measurements", title: "Measurements", icon: ChartLine, load: () => import("../pages/Measurements.svelte") },
  { id: "log", title: "Log", icon: ScrollText, isForOwners: true, load: () => import("../pages/Log.svelte") },
  { id: "audit", title: "Audit", icon: FileClock, isForOwners: true, load: () => import("../pages/Audit.svelte") },
  { id: "approvals", title: "Approvals", icon: ShieldQuestionMark, load: () => import("../pages/Approvals.svelte") },
];
