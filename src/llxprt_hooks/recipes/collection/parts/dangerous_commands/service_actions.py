"""What command lines of services, clusters and package indexes delete or take away: programs and their words."""

from __future__ import annotations

import collections.abc
import re

from llxprt_hooks.recipes.collection.parts.dangerous_commands.command_reader import plain
from llxprt_hooks.recipes.collection.parts.dangerous_commands.program_words import short_options

# The first word of an action in any of SERVICES: `delete`, `delete-stack`, `apps:destroy`, `delete_queue`.
DELETE_WORDS = """delete del destroy terminate remove rm rmi rb purge drop deregister unregister uninstall deprovision
wipe erase truncate unpublish nuke deletefile deletebatch rmdir rmdirs undeploy"""
DELETES = set(DELETE_WORDS.split())
# The same for programs that are not in the table.
ALWAYS_DELETES = {"delete", "destroy", "purge", "terminate", "deregister", "unregister", "nuke", "deprovision"}
# Programs, and what else they do that cannot be undone: words of their action, or options.
SERVICES_AND_WORDS = {
    # Clouds.
    "aws": "put-secret-value update-secret schedule-key-deletion disable-key cancel-key-deletion unsubscribe "
    "stop-db-instance stop-instances put-bucket-policy disable-rule detach-policy revoke-security-group-ingress "
    "modify-db-instance batch-delete batch-write-item empty-bucket --delete",
    "gcloud bq": "disable reset detach",
    "gsutil": "-d",
    "az azcopy": "stop deallocate purge delete-batch --delete-destination",
    "doctl linode-cli hcloud scw oci ibmcloud aliyun vultr-cli exo civo eksctl kops openstack nomad triton s3cmd s5cmd "
    "mc mcli minio b2 swift": "stop --delete --remove --force-delete",
    # Infrastructure as code.
    "terraform tofu terragrunt": "destroy state.rm state.mv state.push force-unlock taint workspace.delete "
    "-auto-approve --auto-approve -destroy",
    "pulumi": "state.delete stack.rm cancel -y --yes",
    "cdk cdktf sam serverless sls eb copilot amplify chalice sst": "",
    "ansible ansible-playbook": "state=absent",
    "packer vagrant multipass lima limactl": "",
    # Clusters.
    "kubectl oc k3s microk8s": "drain cordon taint evict --prune --force --grace-period=0 --replicas=0 rollout.undo",
    "helm helmfile": "rollback",
    "argocd flux istioctl kustomize kubeadm k3d kind minikube velero etcdctl consul crictl ctr": "reset suspend "
    "compaction snapshot.restore leave defrag",
    # Places where code and its secrets live.
    "gh": "archive workflow.disable run.cancel",
    "glab": "archive",
    "vault": "disable revoke seal rekey step-down rotate-root",
    "op doppler infisical chamber sops bw akeyless conjur": "archive suspend unset rotate",
    "gitlab-runner gitlab-rails gitlab-ctl gitlab-backup gitlab-rake": "stop restore cleanse reset-data cleanup",
    "circleci travis buildkite-agent drone fly-ci jenkins-cli": "remove-secret orb.unlist stop disable",
    # Platforms.
    "heroku": "reset unset stop clear maintenance:on releases:rollback",
    "vercel netlify now surge wrangler railway render": "unset down unlink rollback",
    "fly flyctl": "suspend unset stop detach",
    "supabase": "reset repair unset --no-backup",
    "firebase": "disable unset",
    "fastly cloudflared cfcli flarectl apigeecli deck kong": "reset unset purge-all",
    "stripe braintree square paypal twilio sendgrid mailgun postmark": "cancel void refund",
    "ldcli split flipt unleash optimizely": "archive kill",
    "datadog-ci dog newrelic pd splunk sentry-cli promtool grafana-cli logcli amtool": "clean disable mute cleanup",
    # Queues, search engines and backups.
    "kafka-topics kafka-consumer-groups kafka-configs kafka-acls kafka-delete-records kafka-streams-application-reset "
    "kafka-storage kafka-reassign-partitions rpk kcat zookeeper-shell zkcli": "--delete --delete-config --remove "
    "--reset-offsets --delete-offsets --offset-json-file trim-prefix deleteall format --execute",
    "rabbitmqctl rabbitmqadmin": "reset force_reset stop stop_app forget_cluster_node close_all_connections "
    "close_connection clear_permissions clear_policy clear_parameter shutdown purge_queue",
    "nats nsc": "rmm seal",
    "algolia meilisearch elasticsearch opensearch curator solr": "clear reset",
    "restic": "forget prune unlock rewrite --remove-all",
    "borg borgmatic": "prune compact recreate break-lock",
    "rclone": "sync move moveto cleanup dedupe bisync --delete-before --delete-after --delete-excluded --delete-during",
    "duplicity duplicacy kopia tarsnap rsnapshot timeshift snapper": "prune cleanup forget remove-older-than "
    "remove-all-but-n-full expire",
    # Package indexes: what is published cannot be taken back, and what is taken away breaks others.
    "npm": "unpublish deprecate publish",
    "yarn pnpm": "publish unpublish",
    "cargo": "publish yank",
    "gem": "push yank",
    "twine": "upload",
    "poetry flit hatch uv pdm maturin": "publish",
    # This machine.
    "systemctl": "stop disable mask kill poweroff reboot halt rescue emergency isolate kexec suspend hibernate",
    "service rc-service initctl sv supervisorctl": "stop shutdown",
    "chkconfig update-rc.d rc-update": "off remove disable",
    "launchctl": "unload bootout remove disable",
    "loginctl": "poweroff reboot halt terminate-user kill-user terminate-session",
    "apt apt-get aptitude dnf yum zypper apk pkg port snap flatpak": "autoremove autopurge",
    "brew": "uninstall remove rm autoremove",
    "btrfs lxc incus virsh vboxmanage": "undefine",
}
# Their own rules say what they may delete, or these words mean something harmless to them.
NOT_DELETES = {
    "npm": DELETES, "yarn": DELETES, "pnpm": DELETES, "cargo": DELETES, "poetry": DELETES, "uv": DELETES,
    "pdm": DELETES, "hatch": DELETES, "systemctl": DELETES, "kind": set(), "terraform": {"rm", "remove"},
    "tofu": {"rm", "remove"}, "gem": DELETES, "pipenv": DELETES, "conda": DELETES, "rye": DELETES,
}  # fmt: skip
SERVICES = {program: set(words.split()) for group, words in SERVICES_AND_WORDS.items() for program in group.split()}
# Words after which nothing is deleted, and options that make a run a rehearsal.
READ_WORDS = """get list ls describe show view explain help plan preview diff search status logs log version inspect cat
validate lint template test fmt completion print"""
READS = set(READ_WORDS.split())
REHEARSES = r"--?(?:dry-?run(?:=(?!none|false).*)?|what-?if|noop|check|help|simulate|just-print)|-h"
# Options before an action that have a value.
VALUED_OPTIONS = """n namespace context cluster kubeconfig user region profile project account subscription config c s o
output format endpoint endpoint-url e env environment app a r repo R org t token url address server bootstrap-server
host H P port p vhost chdir stack target var var-file f file l selector message body title b q query jq template"""
VALUED = set(VALUED_OPTIONS.split())


def action_words(arguments: list[str]) -> list[str]:
    """The words of an action, without options and their values."""
    words: list[str] = []
    after_option = False
    for word in map(plain, arguments):
        if word.startswith("-"):
            after_option = word.lstrip("-") in VALUED
        else:
            if not after_option:
                words.append(word)
            after_option = False
    return words


def beginnings(words: list[str]) -> collections.abc.Iterator[str]:
    """Each word, and its parts that may be the name of an action; words next to each other joined by a dot."""
    for index, word in enumerate(words):
        low = word.lower()
        yield low
        yield re.split(r"[-_]", low)[0]
        yield from low.split(":")
        yield ".".join(each.lower() for each in words[index : index + 2])


def service_reason(program: str, arguments: list[str]) -> str | None:
    """Why an action of a service's command line is blocked, or None."""
    program = re.sub(r"\.(?:sh|exe|jar|py)$", "", program)
    if any(re.fullmatch(REHEARSES, plain(word)) for word in arguments) or arguments[:1] == ["--user"]:
        return None
    words = action_words(arguments)[:4]
    reads = next((index for index, word in enumerate(words) if word.lower() in READS), None)
    path = [word for word in words[:reads] if re.fullmatch(r"[\w:.=-]+", word)]
    if program not in SERVICES:
        found = next((word for word in path[:3] if word in ALWAYS_DELETES), None)
        return f"`{program} {found}` would delete something for good: ask the user" if found else None
    wanted = SERVICES[program] | (DELETES - NOT_DELETES.get(program, set()))
    given = {plain(word).split("=")[0] for word in arguments} | {plain(word) for word in arguments}
    options = {word for word in wanted if word.startswith("-") and (word in given or clustered(word, arguments))}
    options = options if reads not in (0, 1) else set()
    asked = {*value_after(arguments)} & {"DELETE"}
    found = min({*beginnings(path)} & wanted | options | asked, default=None)
    return f"`{program} {found}` changes or deletes what cannot be brought back: ask the user" if found else None


def clustered(option: str, arguments: list[str]) -> bool:
    """Whether a short option is given among others."""
    return len(option) == 2 and option[1] in short_options(arguments)


def value_after(arguments: list[str]) -> collections.abc.Iterator[str]:
    """The HTTP method that a request is made with."""
    for index, word in enumerate(arguments):
        if word in ("-X", "--method", "--request") and index + 1 < len(arguments):
            yield plain(arguments[index + 1]).upper()
        elif found := re.fullmatch(r"(?:-X|--method=|--request=)(\w+)", plain(word)):
            yield found.group(1).upper()
