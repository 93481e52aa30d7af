"""Where agents run. The base class of all teams is `collabtop.coordination.team.Team`."""
