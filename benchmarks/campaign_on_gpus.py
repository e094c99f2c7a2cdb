#!/usr/bin/env python3
"""A campaign of hone tune on all GPUs of a machine beside the same one on one of them: times, that no problem is tuned
twice, and that winners are as good. Then the campaign loses a worker process, and a GPU. Exits with 1 if a finding is
wrong; times are only told.

Usage: campaign_on_gpus.py HONE [--folder FOLDER] [--steps STEPS] [--json FILE] [-- CAMPAIGN OPTIONS]

The campaign is --preset quick unless options of hone tune say otherwise. Steps, each in a few times the length of the
campaign, which keep what they find in FOLDER, so that they need not be run by one call:
  one      the campaign on one GPU (--one)
  all      on all of them (--all)
  worker   on all of them; one worker process is killed halfway
  hidden   on all of them, interrupted halfway, and continued with the first GPU alone
  report   compares, and prints all findings
"""
import argparse
import collections
import concurrent.futures
import datetime
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = ["one", "all", "worker", "hidden", "report"]
TIE = 1.03  # candidates that are no further apart are ties, between two GPUs of one kind


class Campaign:
    """Runs hone tune for a step, each with a cache file of its own."""

    def __init__(self, options):
        self.hone = options.hone
        self.folder = pathlib.Path(options.folder)
        self.campaign = options.campaign or ["--preset", "quick"]

    def path(self, step, suffix):
        return self.folder / f"{step}.{suffix}"

    def start(self, step, device, environment=None):
        command = [self.hone, "tune", *self.campaign, "--device", device, "--cache", str(self.path(step, "sqlite")),
                   "--json", "--quiet"]
        self.begun = time.monotonic()
        with open(self.path(step, "out"), "w") as out, open(self.path(step, "err"), "w") as err:
            return subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, **(environment or {})})

    def finish(self, step, process):
        """What hone tune said, with its exit code and the seconds that it took."""
        status = process.wait()
        seconds = time.monotonic() - self.begun
        try:
            said = json.loads(self.path(step, "out").read_text())
        except json.JSONDecodeError:
            sys.exit(f"hone tune ended with {status} in step {step}: {self.path(step, 'err').read_text()}")
        return {"seconds": seconds, "status": status, "problems": said["problems"], "devices": said["devices"]}

    def fresh(self, step):
        for file in self.folder.glob(f"{step}.sqlite*"):
            file.unlink()

    def inspect(self, step, *arguments):
        text = subprocess.run([self.hone, "inspect", *arguments, "--cache", str(self.path(step, "sqlite")), "--json"],
                              check=True, capture_output=True, text=True).stdout
        return json.loads(text)["winners"]

    def winners(self, step):
        """Those that were measured, not lent by another size."""
        try:
            return [winner for winner in self.inspect(step) if winner["how"] == "tuned"]
        except subprocess.CalledProcessError:
            return []  # there is no file yet

    def wait_for_winners(self, step, count, process):
        while process.poll() is None and len(self.winners(step)) < count:
            time.sleep(0.05)


def children(pid):
    """Process ids, by /proc/N/stat, whose second field may hold spaces and parentheses."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
        except OSError:
            pass  # it has ended
    return sorted(found)


def problem_of(item):
    return (item["problem"], item["family"], item["context"], item["alignment"])


def class_of(winner):
    problem = winner["problem"]
    return (*(str(problem[name]) for name in problem if name != "sizes"), tuple(winner["tuned_extents"]))


def outcomes(run):
    return dict(collections.Counter(item["outcome"] for item in run["problems"]))


def by_device(run):
    return dict(collections.Counter(item["device"] for item in run["problems"] if item["outcome"] == "tuned"))


def tuned_twice(run):
    counts = collections.Counter(problem_of(item) for item in run["problems"])
    return [" ".join(map(str, problem)) for problem, count in counts.items() if count > 1]


def run_one(campaign, options, _):
    campaign.fresh("one")
    return campaign.finish("one", campaign.start("one", options.one))


def run_all(campaign, options, _):
    campaign.fresh("all")
    return campaign.finish("all", campaign.start("all", options.all))


def halfway(campaign):
    """Half of the winners that the whole campaign stores."""
    return max(1, len(campaign.winners("all")) // 2)


def run_worker(campaign, options, _):
    campaign.fresh("worker")
    process = campaign.start("worker", options.all)
    campaign.wait_for_winners("worker", halfway(campaign), process)
    workers, before = children(process.pid), campaign.winners("worker")
    if process.poll() is not None or not workers:
        sys.exit("the campaign was over before a worker could be killed: give it more problems")
    os.kill(workers[-1], signal.SIGKILL)
    run = campaign.finish("worker", process)
    after = {class_of(winner) for winner in campaign.winners("worker")}
    return {**run, "workers": len(workers), "winners_before": len(before),
            "lost": [" ".join(map(str, class_of(winner))) for winner in before
                     if class_of(winner) not in after]}


def run_hidden(campaign, options, _):
    campaign.fresh("hidden")
    process = campaign.start("hidden", options.all)
    campaign.wait_for_winners("hidden", halfway(campaign), process)
    process.send_signal(signal.SIGINT)
    begun = campaign.finish("hidden", process)
    resumed = campaign.finish("hidden", campaign.start("hidden", options.all, {"CUDA_VISIBLE_DEVICES": "0"}))
    done = {problem_of(item) for item in begun["problems"] if item["outcome"] == "tuned"}
    again = [" ".join(map(str, problem_of(item))) for item in resumed["problems"]
             if problem_of(item) in done and item["outcome"] != "kept"]
    return {"begun": begun, "resumed": resumed, "done_before": len(done), "again": again}


def compare_winners(campaign):
    """How much slower the winners of all GPUs are than those of one, by the trials of the one."""
    of_one = {class_of(winner): winner for winner in campaign.winners("one")}
    pairs = [(winner, of_one[class_of(winner)]) for winner in campaign.winners("all")
             if class_of(winner) in of_one]

    def ratio(pair):
        mine, other = pair
        key = (mine["candidate"]["policy"], mine["candidate"]["max_blocks"])
        detailed = campaign.inspect("one", str(other["id"]))[0]
        times = {(trial["candidate"]["policy"], trial["candidate"]["max_blocks"]): trial["median_us"]
                 for trial in detailed.get("tuning", {}).get("trials", []) if trial["median_us"]}
        if key in times and other["median_us"]:
            best = times.get((other["candidate"]["policy"], other["candidate"]["max_blocks"]), other["median_us"])
            return "by trials of one", times[key] / best, class_of(mine)
        return "by own times", mine["median_us"] / other["median_us"], class_of(mine)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        ratios = list(pool.map(ratio, pairs))
    beyond = sorted((r for r in ratios if r[1] > TIE), key=lambda r: -r[1])
    return {"compared": len(ratios), "by_trials": sum(r[0] == "by trials of one" for r in ratios),
            "median": statistics.median(r[1] for r in ratios) if ratios else None,
            "worst": max((r[1] for r in ratios), default=None), "beyond_ties": len(beyond),
            "beyond_ties_by_trials": sum(r[0] == "by trials of one" for r in beyond),
            "slowest": [{"class": " ".join(map(str, r[2])), "ratio": r[1], "how": r[0]} for r in beyond[:20]]}


def topology():
    if not shutil.which("nvidia-smi"):
        return None
    found = subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True)
    return found.stdout if found.returncode == 0 else None


def report(campaign, options, state):
    """Prints the table; returns the findings, of which `wrong` are those that should not be."""
    wrong = []

    def line(name, value, is_right=True):
        print(f"{name:40} {value}{'' if is_right else '   WRONG'}")
        if not is_right:
            wrong.append(f"{name}: {value}")

    names = collections.Counter(device["name"] for device in state["all" if "all" in state else "one"]["devices"])
    print(f"{', '.join(f'{count} × {name}' for name, count in names.items())}; hone tune "
          f"{' '.join(campaign.campaign)}; {datetime.date.today()}")
    findings = {"date": str(datetime.date.today()), "campaign": campaign.campaign, "gpus": dict(names)}
    for step in ("one", "all"):
        if step in state:
            run = state[step]
            line(f"{step}: seconds", f"{run['seconds']:.1f}")
            line(f"{step}: problems", f"{outcomes(run)}, by device {by_device(run)}", run["status"] == 0)
            line(f"{step}: problems tuned twice", len(tuned_twice(run)), not tuned_twice(run))
            findings[step] = {"seconds": run["seconds"], "status": run["status"], "outcomes": outcomes(run),
                              "by_device": by_device(run), "tuned_twice": tuned_twice(run)}
    if "one" in state and "all" in state:
        gpus = sum(names.values())
        times = state["one"]["seconds"] / state["all"]["seconds"]
        line("all: times as fast as one", f"{times:.2f} (aim: {0.9 * gpus:.1f})")
        same = {problem_of(i) for i in state["one"]["problems"]} == {problem_of(i) for i in state["all"]["problems"]}
        line("all: the problems are those of one", same, same)
        winners = compare_winners(campaign)
        findings["all"].update(times_as_fast=times, winners=winners)
        line("winners of all beside those of one",
             f"{winners['compared']}, of which {winners['by_trials']} by trials of one")
        if winners["compared"]:
            line("  time ÷ that of one's winner", f"median {winners['median']:.3f}, worst {winners['worst']:.3f}; "
                 f"{winners['beyond_ties']} beyond {TIE}, of which {winners['beyond_ties_by_trials']} by trials of one")
    if "worker" in state:
        run = state["worker"]
        died = [death for item in run["problems"] for death in item["died"]]
        done = all(item["outcome"] in ("tuned", "untuned") for item in run["problems"])
        line("worker killed: problems", outcomes(run), done and run["status"] == 0)
        line("  seconds; winners before", f"{run['seconds']:.1f}; {run['winners_before']}")
        line("  winners lost", len(run["lost"]), not run["lost"])
        line("  candidates blamed", died)
        findings["worker"] = {key: run[key] for key in ("seconds", "status", "winners_before", "lost")}
        findings["worker"].update(outcomes=outcomes(run), died=died)
    if "hidden" in state:
        run = state["hidden"]
        resumed = run["resumed"]
        done = all(item["outcome"] in ("tuned", "untuned", "kept") for item in resumed["problems"])
        line("interrupted: problems", outcomes(run["begun"]))
        line("  one GPU hidden: problems", f"{outcomes(resumed)}, by device {by_device(resumed)}",
             done and resumed["status"] == 0)
        line("  tuned again", len(run["again"]), not run["again"])
        findings["hidden"] = {"done_before": run["done_before"], "again": run["again"], "status": resumed["status"],
                              "outcomes": outcomes(resumed), "by_device": by_device(resumed)}
    findings["wrong"] = wrong
    findings["topology"] = topology()
    if findings["topology"]:
        print(findings["topology"])
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(findings, indent=1) + "\n")
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hone")
    parser.add_argument("--folder", help="keeps caches and findings (default: a temporary one)")
    parser.add_argument("--steps", default=",".join(STEPS), help=f"some of {','.join(STEPS)} (default: all)")
    parser.add_argument("--one", default="cuda:0", metavar="DEVICE", help="(default: cuda:0)")
    parser.add_argument("--all", default="all", metavar="DEVICE", help="(default: all)")
    parser.add_argument("--json", metavar="FILE")
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    options.campaign = arguments[at + 1:]
    steps = options.steps.split(",")
    if unknown := [step for step in steps if step not in STEPS]:
        parser.error(f"there is no step {unknown[0]}; there are {', '.join(STEPS)}")
    if options.folder is None:
        options.folder = tempfile.mkdtemp(prefix="campaign_on_gpus.")
    pathlib.Path(options.folder).mkdir(parents=True, exist_ok=True)
    campaign = Campaign(options)
    state_file = pathlib.Path(options.folder) / "state.json"
    state = json.loads(state_file.read_text()) if state_file.exists() else {}
    for step in (step for step in STEPS if step in steps and step != "report"):
        if step in ("worker", "hidden") and "all" not in state:
            parser.error(f"step {step} needs step all first")
        state[step] = globals()[f"run_{step}"](campaign, options, state)
        state_file.write_text(json.dumps(state))
        print(f"{step}: done in {time.monotonic() - campaign.begun:.1f} s", flush=True)
    if "report" in steps:
        if not state:
            parser.error("nothing has been run in this folder")
        sys.exit(1 if report(campaign, options, state)["wrong"] else 0)


if __name__ == "__main__":
    main()
